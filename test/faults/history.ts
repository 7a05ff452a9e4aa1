import type { StoredPlant } from '../setup/database/stored-plants.js';
import { comparison, type SentPlant } from '../setup/model/contradictions.js';

/** A response that is not as openapi.json says, or does not come in time. */
export const UNDOCUMENTED = -1;

/** A plant whose id may be any int64, as decimal digits. */
export type Plant = Omit<SentPlant, 'id'> & { readonly id: string };

export interface Outcome {
  /** 200, the number of an error, 0 if nothing is known, such as for a connection that was lost, or UNDOCUMENTED. */
  readonly outcome: number;
  /** Why it is 0 or UNDOCUMENTED. */
  readonly reason?: string;
}

/** A request, or a statement of a plain client, with its outcome. */
export interface SentRequest extends Plant, Outcome {
  /** Outcomes that are right while nothing fails. */
  readonly expected: readonly number[];
  /** Seconds since the start of the load. */
  readonly sentAt: number;
  readonly endedAt: number;
}

/** All that was sent to one service, or by one plain client. */
export class History {
  readonly sent: SentRequest[] = [];
  /** Times of acknowledgments, in seconds since the start of the load. */
  readonly acknowledgedAt: number[] = [];

  /** @param now returns seconds since the start of the load */
  constructor(
    readonly label: string,
    private readonly now: () => number,
  ) {}

  /** Sends a plant, and records the outcome. */
  async record(
    plant: Plant,
    expected: readonly number[],
    send: () => Promise<Outcome>,
  ): Promise<number> {
    const sentAt = this.now();
    const result = await send();
    const endedAt = this.now();
    this.sent.push({ ...plant, ...result, expected, sentAt, endedAt });
    if (result.outcome === 200) this.acknowledgedAt.push(endedAt);
    return result.outcome;
  }
}

/** Counts of ids: what the database has, compared with what the clients were told. */
export interface Comparison {
  /** Acknowledged, and not stored. */
  readonly missing: number;
  /** Stored, and not as any plant that was sent. */
  readonly wrong: number;
  /** Stored, although no client was told so. */
  readonly unacknowledged: number;
}

export function compare(sent: readonly SentRequest[], rows: readonly StoredPlant[]): Comparison {
  const isStored = comparison(rows);
  const ids = new Set(rows.map(({ id }) => id));
  const idsOf = (chosen: readonly SentRequest[]) => new Set(chosen.map(({ id }) => id));
  const acknowledged = idsOf(sent.filter(({ outcome }) => outcome === 200));
  const stored = idsOf(sent).intersection(ids);
  return {
    missing: acknowledged.difference(ids).size,
    wrong: stored.difference(idsOf(sent.filter(isStored))).size,
    unacknowledged: stored.difference(acknowledged).size,
  };
}
