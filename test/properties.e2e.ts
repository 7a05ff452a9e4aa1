import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyBody } from './setup/arbitrary-bodies.js';
import { anyInt64, anyStorableText } from './setup/arbitrary-json.js';
import { anyHistory } from './setup/arbitrary-histories.js';
import { verdictOn, type ExpectedPlant, type Verdict } from './setup/contract-oracle.js';
import { playHistory } from './setup/play-history.js';
import { forAll, PROPERTY_TIMEOUT_MS } from './setup/properties.js';
import type { RawResponse } from './setup/raw-http.js';
import { startService, type TestService } from './setup/service.js';
import { bytesOf, sendInPieces } from './setup/wire.js';

const LIMIT = 4096;

describe('for any input', () => {
  let service: TestService;

  beforeAll(async () => {
    // These tests do not concern the time-out, and a busy machine must not cause one.
    service = await startService({
      BODY_LIMIT: String(LIMIT),
      AUTH_FAILURES_PER_MINUTE: '1000000',
      DATABASE_TIMEOUT_MS: '20000',
    });
  });
  beforeEach(() => service.database.query('TRUNCATE plants'));
  afterAll(() => service.close());

  const anyRequest = fc.record({
    body: anyBody(LIMIT),
    chunks: fc.option(fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 3 }), {
      nil: undefined,
    }),
  });

  /** Requests on one connection, and where their bytes are cut. */
  const anyExchange = fc.record({
    requests: fc.array(anyRequest, { minLength: 1, maxLength: 8 }),
    cuts: fc.array(fc.nat(), { maxLength: 12 }),
  });

  it(
    'in any pieces, the service decides as the contract says, and stores exactly that',
    () =>
      forAll(anyExchange, async ({ requests, cuts }) => {
        await service.database.query('TRUNCATE plants');
        const bytes = Buffer.concat(requests.map((request) => bytesOf(service.token, request)));
        const responses = await sendInPieces(service.port, bytes, cuts, requests.length);
        const rows = new Map<string, ExpectedPlant>();
        responses.forEach((response, i) => {
          const verdict = verdictAfter(rows, requests[i]!.body);
          expectVerdict(response, verdict);
          if ('plant' in verdict) rows.set(verdict.plant.id, verdict.plant);
        });
        const isClosed = responses.at(-1)?.headers['connection'] === 'close';
        expect(responses.length === requests.length || isClosed).toBe(true);
        expect(await rowsInBytes(service)).toEqual(rowsOf(rows.values()));
      }),
    PROPERTY_TIMEOUT_MS,
  );
  const anyPlant = fc.record({
    id: anyInt64,
    name: anyStorableText,
    tag: fc.option(anyStorableText, { nil: undefined }),
  });

  it(
    'plants that are sent together survive from request to row to response',
    () =>
      forAll(
        fc.uniqueArray(anyPlant, { selector: ({ id }) => id, minLength: 1 }),
        async (plants) => {
          await service.database.query('TRUNCATE plants');
          const responses = await Promise.all(
            plants.map(({ id, name, tag }) =>
              service.post(`{"id":${id},${JSON.stringify({ name, tag }).slice(1)}`),
            ),
          );
          const sent = plants.map(({ name, tag }) =>
            tag === undefined ? { name } : { name, tag },
          );
          expect(responses.map(({ status, body }) => ({ status, body }))).toEqual(
            sent.map((body) => ({ status: 200, body })),
          );
          expect(await rowsInBytes(service)).toEqual(
            rowsOf(plants.map(({ id, name, tag }) => ({ id: String(id), name, tag: tag ?? null }))),
          );
        },
      ),
    PROPERTY_TIMEOUT_MS,
  );

  it(
    'clients, resets, cuts and restarts leave rows that explain every response',
    () =>
      forAll(anyHistory, async (steps) => {
        expect(await playHistory(service, steps)).toEqual([]);
      }),
    PROPERTY_TIMEOUT_MS,
  );
});

/** @param rows that are stored already */
function verdictAfter(rows: ReadonlyMap<string, ExpectedPlant>, body: Buffer): Verdict {
  const verdict = verdictOn(body, LIMIT);
  if (!('plant' in verdict)) return verdict;
  const { plant } = verdict;
  const stored = rows.get(plant.id) ?? plant;
  const isSame = stored.name === plant.name && stored.tag === plant.tag;
  return isSame ? verdict : { error: 40006 };
}

function expectVerdict({ status, body }: RawResponse, verdict: Verdict): void {
  const json = JSON.parse(Buffer.from(body, 'latin1').toString('utf8')) as { message: string };
  if ('plant' in verdict) {
    const { name, tag } = verdict.plant;
    expect({ status, json }).toEqual({
      status: 200,
      json: tag === null ? { name } : { name, tag },
    });
    return;
  }
  const { error, fields } = verdict;
  expect({ status, json }).toEqual({ status: 400, json: { error, message: expect.any(String) } });
  if (fields === undefined) return;
  const named = json.message.match(/(?<=[:;] )\w+(?= (?:must|is missing|contains))/g) ?? [];
  expect(named.filter((field) => field !== 'it').sort()).toEqual(fields);
}

/** All rows, with the bytes of their texts. */
function rowsInBytes({ database }: TestService): Promise<ExpectedPlant[]> {
  return database.query<ExpectedPlant>(
    `SELECT id::text AS id, encode(convert_to(name, 'UTF8'), 'hex') AS name,
       encode(convert_to(tag, 'UTF8'), 'hex') AS tag
     FROM plants ORDER BY plants.id`,
  );
}

/** The plants as rowsInBytes gives them. */
function rowsOf(plants: Iterable<ExpectedPlant>): ExpectedPlant[] {
  const hex = (text: string) => Buffer.from(text, 'utf8').toString('hex');
  return [...plants]
    .map(({ id, name, tag }) => ({ id, name: hex(name), tag: tag === null ? null : hex(tag) }))
    .sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
}
