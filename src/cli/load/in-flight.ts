// For a service that other clients use, too, or a small one.

/** More requests than this add nothing: the service stores up to 256 plants in one batch. */
const MAX_IN_FLIGHT = 256;

/** After a refusal, the limit grows by one when the service has accepted this many times as many requests as the limit. */
const SLOW_GROWTH = 16;

/**
 * Decides how many requests are in flight, as TCP does. The number grows fast until the service refuses a request, is halved
 * then, and grows slowly from there.
 */
export class InFlight {
  private limit = 8;
  private growsFast = true;
  private count = 0;
  private resumeAt = 0;
  private isStopped = false;
  private resumeTimer: NodeJS.Timeout | undefined;
  private readonly waiting: (() => void)[] = [];

  /** Waits for a place. */
  async enter(): Promise<void> {
    const entered = new Promise<void>((resolve) => this.waiting.push(resolve));
    this.admit();
    await entered;
  }

  /** Gives a place back after a response. */
  leave(): void {
    this.count--;
    this.admit();
  }

  /** After a request that the service accepted. */
  grow(): void {
    this.limit = Math.min(
      MAX_IN_FLIGHT,
      this.limit + (this.growsFast ? 1 : 1 / (SLOW_GROWTH * this.limit)),
    );
  }

  /** Sends nothing for some seconds. */
  pause(seconds: number): void {
    if (this.isStopped) return;
    const now = performance.now();
    // Requests that were in flight together are refused together: only the first refusal halves the limit.
    if (now >= this.resumeAt) this.limit = Math.max(1, this.limit / 2);
    this.growsFast = false;
    this.resumeAt = Math.max(this.resumeAt, now + seconds * 1000);
    clearTimeout(this.resumeTimer);
    this.resumeTimer = setTimeout(() => {
      this.resumeTimer = undefined;
      this.admit();
    }, this.resumeAt - now);
  }

  /** Admits nothing any more. */
  stop(): void {
    this.isStopped = true;
    clearTimeout(this.resumeTimer);
  }

  get isPaused(): boolean {
    return this.isStopped || this.resumeTimer !== undefined;
  }

  private admit(): void {
    while (!this.isPaused && this.count < Math.floor(this.limit)) {
      const next = this.waiting.shift();
      if (next === undefined) return;
      this.count++;
      next();
    }
  }
}
