import { overloaded } from '../errors/service-error.js';
import type { Caller } from './caller.js';

/** Look-ups of tokens that are in flight: each token is looked up once, however many requests wait for its verdict. */
export class LookUps {
  private readonly inFlight = new Map<string, Promise<Caller | undefined>>();

  /** @param limit look-ups that may be in flight at once */
  constructor(private readonly limit: number) {}

  has(key: string): boolean {
    return this.inFlight.has(key);
  }

  /** @throws ServiceError overloaded; and whatever `find` throws */
  async run(key: string, find: () => Promise<Caller | undefined>): Promise<Caller | undefined> {
    const inFlight = this.inFlight.get(key);
    if (inFlight !== undefined) return inFlight;
    if (this.inFlight.size >= this.limit) throw overloaded();
    const result = find().finally(() => this.inFlight.delete(key));
    this.inFlight.set(key, result);
    return result;
  }
}
