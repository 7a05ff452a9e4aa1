import type { BuiltService } from './built-service.js';

/** A plant as it is sent. */
export interface SentPlant {
  readonly id: number;
  readonly name: string;
  readonly tag?: string;
}

/** A plant that was sent, with the outcome: 200, or the number of the error. */
export interface Sent extends SentPlant {
  readonly outcome: number;
}

/** @returns the outcome: 200, or the number of the error */
export async function send({ url }: BuiltService, token: string, plant: SentPlant): Promise<Sent> {
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
  const stored = new Map(rows.map((row) => [Number(row.id), row]));
  const isStored = ({ id, name, tag }: Sent) => {
    const row = stored.get(id);
    return row?.name === name && row.tag === (tag ?? null);
  };
  const problems: string[] = [];
  for (const sent of history) {
    const { id, outcome } = sent;
    if (outcome === 200 && !isStored(sent)) problems.push(`${id}: 200, but not stored`);
    if (outcome === 40006 && (!stored.has(id) || isStored(sent)))
      problems.push(`${id}: refused, although no different plant is stored`);
  }
  const known = new Set(history.filter(isStored).map(({ id }) => id));
  for (const id of stored.keys()) {
    if (!known.has(id)) problems.push(`${id}: stored, but never sent`);
  }
  return problems;
}
