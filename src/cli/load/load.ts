// For a load that outlasts restarts and outages of the service.

import { ErrorCode } from '../../errors/error-codes.js';
import { InFlight } from './in-flight.js';
import type { LoadProgress } from './load-progress.js';
import type { Outcome, PlantClient } from './plant-client.js';
import type { PlantLine } from './plant-lines.js';
import type { RefusedLines } from './refused-lines.js';

/** Sends plants to a service, and repeats the plants that may not have arrived, however long the service is unavailable. */
export class Load {
  private readonly inFlight = new InFlight();
  private readonly failed = Promise.withResolvers<never>();

  constructor(
    private readonly client: PlantClient,
    private readonly progress: LoadProgress,
    private readonly refused: RefusedLines,
  ) {}

  /**
   * @returns when every plant is stored or refused
   * @throws the error of `lines`, of the client or of the list of refused lines
   */
  async run(lines: AsyncIterable<PlantLine>): Promise<void> {
    await Promise.race([this.storeAll(lines), this.failed.promise]);
  }

  /** Sends nothing any more, and waits for no response. */
  async stop(): Promise<void> {
    this.inFlight.stop();
    await this.client.close();
  }

  private async storeAll(lines: AsyncIterable<PlantLine>): Promise<void> {
    const stores = new Set<Promise<void>>();
    for await (const plant of lines) {
      await this.inFlight.enter();
      this.progress.reached(plant);
      const stored = this.store(plant)
        .catch(this.failed.reject)
        .finally(() => stores.delete(stored));
      stores.add(stored);
    }
    await Promise.all(stores);
  }

  private async store(plant: PlantLine): Promise<void> {
    for (;;) {
      try {
        if (this.settle(plant, await this.send(plant))) return;
      } finally {
        this.inFlight.leave();
      }
      await this.inFlight.enter();
    }
  }

  private async send({ json, problem = '' }: PlantLine): Promise<Outcome> {
    return json === undefined
      ? { kind: 'refused', error: ErrorCode.bodyInvalid, message: problem }
      : this.client.send(json);
  }

  /** @returns false if the plant must be sent again */
  private settle({ line }: PlantLine, outcome: Outcome): boolean {
    if (outcome.kind === 'unknown') {
      this.progress.waitingFor = outcome.reason;
      this.inFlight.pause(outcome.retryAfter);
      return false;
    }
    // Requests that were in flight before the pause may still succeed.
    if (!this.inFlight.isPaused) this.progress.waitingFor = '';
    if (outcome.kind === 'refused') this.refused.add(line, outcome.error, outcome.message);
    else this.inFlight.grow();
    this.progress.settled(outcome.kind);
    return true;
  }
}
