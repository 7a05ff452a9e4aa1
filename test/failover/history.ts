/** The end of one request or statement. */
export interface Outcome {
  readonly kind: 'acknowledged' | 'refused' | 'other';
  /** The status and error of a response, or the error of a connection. */
  readonly detail: string;
}

export interface Plant {
  readonly id: string;
  readonly name: string;
  readonly tag: string | null;
}

/** The plant of an id, so that a row can be compared with what was sent. */
export function plantOf(id: string): Plant {
  return { id, name: `plant ${id}`, tag: BigInt(id) % 2n === 0n ? `tag ${id}` : null };
}

/** Requests that ended in each second of the run. */
export type Seconds = Record<Outcome['kind'], number[]>;

/** Everything that one kind of client was told. */
export class History {
  readonly seconds: Seconds = { acknowledged: [], refused: [], other: [] };
  /** Times of acknowledgments, in seconds since the start of the run. */
  readonly acknowledgedAt: number[] = [];
  readonly acknowledged = new Set<string>();
  readonly sent = new Set<string>();
  /** Requests by the detail of their outcome. */
  readonly details: Record<string, number> = {};
  slowestMilliseconds = 0;

  /**
   * @param id of the plant that was sent
   * @param sentAt seconds since the start of the run
   * @param endedAt seconds since the start of the run
   */
  record(id: string, { kind, detail }: Outcome, sentAt: number, endedAt: number): void {
    const second = Math.floor(endedAt);
    this.seconds[kind][second] = (this.seconds[kind][second] ?? 0) + 1;
    this.details[detail] = (this.details[detail] ?? 0) + 1;
    this.slowestMilliseconds = Math.max(this.slowestMilliseconds, (endedAt - sentAt) * 1000);
    this.sent.add(id);
    if (kind !== 'acknowledged') return;
    this.acknowledged.add(id);
    this.acknowledgedAt.push(endedAt);
  }
}

/** What the database has, compared with what the clients were told. */
export interface Comparison {
  /** Ids that were acknowledged and are not stored. */
  readonly missing: string[];
  /** Ids whose row is not the plant that was sent. */
  readonly wrong: string[];
  /** Plants that are stored, although no client was told so. */
  readonly unanswered: number;
}

/** @param rows by their ids */
export function compare(history: History, rows: ReadonlyMap<string, Plant>): Comparison {
  const missing: string[] = [];
  const wrong: string[] = [];
  let unanswered = 0;
  for (const id of history.sent) {
    const row = rows.get(id);
    const isAcknowledged = history.acknowledged.has(id);
    if (row === undefined) {
      if (isAcknowledged) missing.push(id);
      continue;
    }
    const { name, tag } = plantOf(id);
    if (row.name !== name || row.tag !== tag) wrong.push(id);
    if (!isAcknowledged) unanswered++;
  }
  return { missing, wrong, unanswered };
}
