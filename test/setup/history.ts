import type { BuiltService } from './built-service.js';

/** A plant as it is sent. */
export interface SentPlant {
  readonly id: number;
  readonly name: string;
  readonly tag?: string;
}

/** A plant that was sent, with the outcome: 200, the number of the error, or 0 for no response. */
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

/** An outcome that a row is compared with; the id may be decimal digits, as that of a row. */
type Compared = Omit<Sent, 'id'> & { readonly id: number | string };

/**
 * Compares outcomes with the rows that are stored at the end. A number from 50000 on, or no response, says nothing: the plant
 * may be stored or not.
 *
 * @returns a sentence for each contradiction
 */
export function contradictions(history: readonly Compared[], rows: readonly StoredRow[]): string[] {
  const stored = new Map(rows.map((row) => [row.id, row]));
  const isStored = ({ id, name, tag }: Compared) => {
    const row = stored.get(String(id));
    return row?.name === name && row.tag === (tag ?? null);
  };
  const problems: string[] = [];
  const possible = new Set<string>();
  for (const sent of history) {
    const { outcome } = sent;
    const id = String(sent.id);
    if (outcome === 200 && !isStored(sent)) problems.push(`${id}: 200, but not stored`);
    if (outcome === 40006 && (!stored.has(id) || isStored(sent)))
      problems.push(`${id}: refused, although no different plant is stored`);
    const isRefused = outcome >= 40000 && outcome < 50000;
    if (!isRefused && isStored(sent)) possible.add(id);
  }
  for (const id of stored.keys()) {
    if (!possible.has(id)) problems.push(`${id}: stored, but no request can have stored it`);
  }
  return problems;
}
