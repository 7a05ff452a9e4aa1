const REFRESH_MS = 500;

/** Shows the current step and the remaining time: on a terminal in one line, elsewhere in a line for each step. */
export class Progress {
  private readonly start = performance.now();
  private doneSeconds = 0;
  private current: { label: string; seconds: number; start: number } | undefined;
  private readonly timer: NodeJS.Timeout | undefined;

  /** @param plannedSeconds how long all steps will take together */
  constructor(
    private readonly out: NodeJS.WriteStream,
    private readonly plannedSeconds: number,
  ) {
    if (out.isTTY) this.timer = setInterval(() => this.draw(), REFRESH_MS);
  }

  /** Shows `label` while `work` runs. */
  async during<Result>(
    label: string,
    seconds: number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    this.current = { label, seconds, start: performance.now() };
    if (this.out.isTTY) this.draw();
    else this.out.write(`${this.line()}\n`);
    try {
      return await work();
    } finally {
      this.current = undefined;
      this.doneSeconds += seconds;
    }
  }

  /** Prints a line that stays. */
  note(text: string): void {
    this.clear();
    this.out.write(`${text}\n`);
  }

  stop(): void {
    clearInterval(this.timer);
    this.clear();
  }

  private draw(): void {
    if (this.current === undefined) return;
    this.clear();
    this.out.write(this.line().slice(0, this.out.columns - 1));
  }

  private clear(): void {
    if (this.out.isTTY) this.out.write('\r\x1b[K');
  }

  private line(): string {
    const elapsed = (performance.now() - this.start) / 1000;
    const { label, seconds, start } = this.current!;
    const ofCurrent = Math.min(seconds, (performance.now() - start) / 1000);
    const left = Math.max(0, this.plannedSeconds - this.doneSeconds - ofCurrent);
    return `${clock(elapsed)}, about ${clock(left)} left: ${label}`;
  }
}

function clock(seconds: number): string {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
