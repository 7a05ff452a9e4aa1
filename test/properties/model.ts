// Compares responses and rows with what the contract says about the requests.

import { isDeepStrictEqual } from 'node:util';
import { expect } from '@jest/globals';
import { PLANT_FIELDS } from '../../src/plants/dto/plant.js';
import { verdictOn, type ExpectedPlant } from '../setup/model/contract-oracle.js';
import type { RawResponse } from '../setup/http/raw-http.js';
import type { TestService } from '../setup/service/service.js';

/**
 * Compares the responses to requests, and all rows, with the contract. Pipelined requests are handled at once: of several plants
 * with one id, any may be the one that is stored.
 *
 * @param bodies of the requests; there are fewer responses if the service closed the connection
 * @param limit BODY_LIMIT, in bytes
 */
export async function expectExchange(
  service: TestService,
  bodies: readonly Buffer[],
  responses: readonly RawResponse[],
  limit: number,
): Promise<void> {
  const verdicts = bodies.map((body) => verdictOn(body, limit));
  const sent = verdicts.flatMap((verdict) => ('plant' in verdict ? [verdict.plant] : []));
  const rows = await rowsOf(service);
  for (const row of rows) {
    expect(sent.filter((plant) => isDeepStrictEqual(plant, row))).not.toEqual([]);
  }
  const stored = new Map(rows.map((row) => [row.id, row]));
  responses.forEach((response, i) => {
    const verdict = verdicts[i]!;
    if (!('plant' in verdict)) return expectError(response, verdict.error, verdict.fields);
    const row = stored.get(verdict.plant.id);
    if (row === undefined || isDeepStrictEqual(row, verdict.plant)) {
      expect(row).toEqual(verdict.plant);
      expectPlant(response, verdict.plant);
    } else expectError(response, 40006);
  });
}

/** Compares all rows with the plants, in the order of their ids. */
export async function expectRows(
  service: TestService,
  plants: readonly ExpectedPlant[],
): Promise<void> {
  expect(await rowsOf(service)).toEqual(
    plants.toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1)),
  );
}

async function rowsOf({ database }: TestService): Promise<ExpectedPlant[]> {
  const columns = PLANT_FIELDS.map((field) => `${field}::text`);
  const rows = await database.query<ExpectedPlant>(
    `SELECT ${columns.join()} FROM plants ORDER BY plants.id`,
  );
  // isDeepStrictEqual compares prototypes, and those of the driver are not those of the tests.
  return rows.map((row) => ({ ...row }));
}

function expectPlant({ status, body }: RawResponse, { id: _id, ...texts }: ExpectedPlant): void {
  const sent = Object.entries(texts).filter(([, text]) => text !== null);
  expect({ status, json: jsonOf(body) }).toEqual({ status: 200, json: Object.fromEntries(sent) });
}

/** @param fields that the message must name */
function expectError({ status, body }: RawResponse, error: number, fields?: readonly string[]) {
  const json = jsonOf(body);
  expect({ status, json }).toEqual({ status: 400, json: { error, message: expect.any(String) } });
  if (fields !== undefined) expect(fieldsNamedIn(json.message)).toEqual(fields);
}

const jsonOf = (body: string) =>
  JSON.parse(Buffer.from(body, 'latin1').toString('utf8')) as { message: string };

function fieldsNamedIn(message: string): string[] {
  const named = message.match(/(?<=[:;] )\w+(?= (?:must|is missing|contains))/g) ?? [];
  return named.filter((field) => field !== 'it').sort();
}
