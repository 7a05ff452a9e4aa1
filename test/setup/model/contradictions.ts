import type { StoredPlant } from '../database/stored-plants.js';
import type { BuiltService } from '../service/built-service.js';
import { outcomeOf, postJson } from '../http/post-plant.js';
import { TEXT_FIELDS } from '../../../src/plants/dto/plant.js';
import type { PlantTexts } from './plant.js';

/** A plant as it is sent. */
export type SentPlant = { readonly id: number } & PlantTexts;

/** A plant that was sent, with the outcome: 200, the number of the error, or 0 if there was no response. */
export type Sent = SentPlant & { readonly outcome: number };

/**
 * @returns the outcome: 200, or the number of the error
 * @throws Error when there is no response, or one that is not as openapi.json says
 */
export async function send(
  { url }: Pick<BuiltService, 'url'>,
  token: string,
  plant: SentPlant,
): Promise<Sent> {
  const response = await postJson(url, token, JSON.stringify(plant));
  return { ...plant, outcome: await outcomeOf(response) };
}

/** An outcome that a row is compared with; the id may be decimal digits, as that of a row. */
type Compared = Omit<Sent, 'id'> & { readonly id: number | string };

/**
 * Compares outcomes with the rows that are stored at the end. A number from 50000 on, or no response, says nothing: the
 * plant may be stored or not. A plant that got a number from 40000 on was refused for good.
 *
 * @returns a sentence for each contradiction
 */
export function contradictions(
  history: readonly Compared[],
  rows: readonly StoredPlant[],
): string[] {
  const isStored = comparison(rows);
  const possible = new Set(
    history
      .filter((sent) => (sent.outcome < 40000 || sent.outcome >= 50000) && isStored(sent))
      .map(({ id }) => String(id)),
  );
  const unexplained = rows.filter(({ id }) => !possible.has(id));
  return [
    ...falseOutcomes(history, rows),
    ...unexplained.map(({ id }) => `${id}: stored, but no request can have stored it`),
  ];
}

/** @returns a sentence for each plant that is not stored although it got 200, or got 40006 without a different plant */
export function falseOutcomes(
  history: readonly Compared[],
  rows: readonly StoredPlant[],
): string[] {
  const isStored = comparison(rows);
  const ids = new Set(rows.map(({ id }) => id));
  return history.flatMap((sent) => {
    if (sent.outcome === 200 && !isStored(sent)) return [`${sent.id}: 200, but not stored`];
    return sent.outcome === 40006 && (!ids.has(String(sent.id)) || isStored(sent))
      ? [`${sent.id}: refused, although no different plant is stored`]
      : [];
  });
}

/** @returns a function that tells whether a plant is stored as it was sent */
export function comparison(rows: readonly StoredPlant[]): (sent: Compared) => boolean {
  const stored = new Map(rows.map((row) => [row.id, row]));
  return (sent) => {
    const row = stored.get(String(sent.id));
    return row !== undefined && TEXT_FIELDS.every((field) => row[field] === sent[field]);
  };
}
