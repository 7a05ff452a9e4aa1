import type { BuiltService } from './built-service.js';

/** A plant as it is sent. */
export interface SentPlant {
  readonly id: number;
  readonly name: string;
  readonly tag?: string;
}

/** A plant that was sent, with the outcome: 200, the number of the error, or 0 if there was no response. */
export interface Sent extends SentPlant {
  readonly outcome: number;
}

/** @returns the outcome: 200, or the number of the error */
export async function send(
  { url }: Pick<BuiltService, 'url'>,
  token: string,
  plant: SentPlant,
): Promise<Sent> {
  const response = await fetch(`${url}/plants`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(plant),
  });
  const { error } = (await response.json()) as { error?: number };
  return { ...plant, outcome: error ?? response.status };
}

/** A stored plant, with the id as decimal digits. */
export interface StoredRow {
  readonly id: string;
  readonly name: string;
  readonly tag: string | null;
}

/**
 * Compares outcomes with the rows that are stored at the end.
 *
 * @returns a sentence for each contradiction
 */
export function contradictions(history: readonly Sent[], rows: readonly StoredRow[]): string[] {
  // A request that got a 4xx was refused for good; after another error, or none, its plant may be stored.
  const mayBeStored = history.filter(({ outcome }) => outcome < 40000 || outcome >= 50000);
  const unexplained = rows.filter((row) => !mayBeStored.some((sent) => isRowOf(sent, row)));
  return [
    ...falseOutcomes(history, rows),
    ...unexplained.map(({ id }) => `${id}: stored, but never sent, or refused`),
  ];
}

/** @returns a sentence for each plant that is not stored although it got 200, or got 40006 without a different plant */
export function falseOutcomes(history: readonly Sent[], rows: readonly StoredRow[]): string[] {
  const stored = new Map(rows.map((row) => [Number(row.id), row]));
  return history.flatMap((sent) => {
    const { id, outcome } = sent;
    const row = stored.get(id);
    const isStored = row !== undefined && isRowOf(sent, row);
    if (outcome === 200 && !isStored) return [`${id}: 200, but not stored`];
    return outcome === 40006 && (row === undefined || isStored)
      ? [`${id}: refused, although no different plant is stored`]
      : [];
  });
}

function isRowOf(sent: SentPlant, row: StoredRow): boolean {
  return sent.id === Number(row.id) && sent.name === row.name && (sent.tag ?? null) === row.tag;
}
