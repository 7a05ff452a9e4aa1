import { overloaded } from '../errors/service-error.js';
import type { Caller } from './caller.js';

/** Questions about tokens that are under way: each is asked once, however many requests want to know. */
export class Questions {
  private readonly underWay = new Map<string, Promise<Caller | undefined>>();

  /** @param limit questions that may be under way at once */
  constructor(private readonly limit: number) {}

  has(key: string): boolean {
    return this.underWay.has(key);
  }

  /** @throws ServiceError overloaded; and whatever `question` throws */
  async ask(key: string, question: () => Promise<Caller | undefined>): Promise<Caller | undefined> {
    const underWay = this.underWay.get(key);
    if (underWay !== undefined) return underWay;
    if (this.underWay.size >= this.limit) throw overloaded();
    const answer = question().finally(() => this.underWay.delete(key));
    this.underWay.set(key, answer);
    return answer;
  }
}
