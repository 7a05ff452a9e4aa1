import { isDeepStrictEqual } from 'node:util';
import { expect } from '@jest/globals';
import { PLANT_FIELDS } from '../../src/plants/dto/plant.js';
import { verdictOn, type ExpectedPlant, type Verdict } from '../setup/model/contract-oracle.js';
import type { RawResponse } from '../setup/http/raw-http.js';
import type { TestService } from '../setup/service/service.js';

/** The store as the contract describes it, for requests that are handled one after the other. */
export class Model {
  private readonly plants = new Map<string, ExpectedPlant>();

  /** @param limit BODY_LIMIT, in bytes */
  constructor(private readonly limit: number) {}

  /** Compares a response with the contract, and remembers the plant if it is one to store. */
  expectResponse(body: Buffer, { status, body: text }: RawResponse): void {
    const verdict = this.verdictOn(body);
    const json = JSON.parse(Buffer.from(text, 'latin1').toString('utf8')) as { message: string };
    if ('plant' in verdict) {
      const { id, ...texts } = verdict.plant;
      const sent = Object.entries(texts).filter(([, text]) => text !== null);
      expect({ status, json }).toEqual({ status: 200, json: Object.fromEntries(sent) });
      this.plants.set(id, verdict.plant);
      return;
    }
    const { error, fields } = verdict;
    expect({ status, json }).toEqual({ status: 400, json: { error, message: expect.any(String) } });
    if (fields !== undefined) expect(fieldsNamedIn(json.message)).toEqual(fields);
  }

  /** Compares all rows with the plants that were to be stored. */
  expectRows(service: TestService): Promise<void> {
    return expectRows(service, [...this.plants.values()]);
  }

  private verdictOn(body: Buffer): Verdict {
    const verdict = verdictOn(body, this.limit);
    if (!('plant' in verdict)) return verdict;
    const { plant } = verdict;
    const stored = this.plants.get(plant.id) ?? plant;
    return isDeepStrictEqual(stored, plant) ? verdict : { error: 40006 };
  }
}

function fieldsNamedIn(message: string): string[] {
  const named = message.match(/(?<=[:;] )\w+(?= (?:must|is missing|contains))/g) ?? [];
  return named.filter((field) => field !== 'it').sort();
}

/** Compares all rows with the plants, and their texts byte for byte. */
export async function expectRows(
  { database }: TestService,
  plants: readonly ExpectedPlant[],
): Promise<void> {
  const columns = PLANT_FIELDS.map(
    (field) => `encode(convert_to(${field}::text, 'UTF8'), 'hex') AS ${field}`,
  );
  const rows = await database.query(`SELECT ${columns.join()} FROM plants ORDER BY plants.id`);
  const hex = (text: string | null) =>
    text === null ? null : Buffer.from(text, 'utf8').toString('hex');
  expect(rows).toEqual(
    plants
      .toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1))
      .map((plant) => Object.fromEntries(PLANT_FIELDS.map((field) => [field, hex(plant[field])]))),
  );
}
