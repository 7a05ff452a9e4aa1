const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 30_000;

/** A worker that ran this long started successfully: reset the back-off. */
const STABLE_MS = 60_000;

/** The delay before a worker is replaced: twice as long each time. */
export class BackOff {
  private ends = 0;

  /**
   * @param lifetime of the worker that ended, in milliseconds
   * @returns milliseconds
   */
  next(lifetime: number): number {
    if (lifetime >= STABLE_MS) this.ends = 0;
    const delay = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.ends);
    this.ends++;
    return delay;
  }
}
