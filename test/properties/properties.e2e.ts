import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isRequired, TEXT_FIELDS } from '../../src/plants/dto/plant.js';
import { recordOf } from '../setup/model/plant.js';
import { anyBody } from './arbitrary-bodies.js';
import { anyInt64, anyStorableText } from './arbitrary-json.js';
import { anyHistory, anyHistoryWithKills } from './arbitrary-histories.js';
import { startBeside } from './killable-service.js';
import { expectExchange, expectRows } from './model.js';
import { playHistory } from './play-history.js';
import { forAll, PROPERTY_TIMEOUT_MS, RUNS } from './properties.js';
import { startService, type TestService } from '../setup/service/service.js';
import { bytesOf, sendInPieces } from './wire.js';

const LIMIT = 4096;

/** These tests do not concern the limit. */
const settings = { AUTH_FAILURES_PER_MINUTE: '1000000' };

describe('for any input', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ ...settings, BODY_LIMIT: String(LIMIT) });
  });
  beforeEach(() => service.database.query('TRUNCATE plants'));
  afterAll(() => service.close());

  const anyRequest = fc.record({
    body: anyBody(LIMIT),
    chunks: fc.option(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 3 }), {
      nil: undefined,
    }),
  });

  /** Requests on one connection, and where their bytes are cut. */
  const anyExchange = fc.record({
    requests: fc.array(anyRequest, { minLength: 1, maxLength: 8 }),
    cuts: fc.oneof(fc.array(fc.nat(), { maxLength: 12 }), fc.integer({ min: 3, max: 50 })),
  });

  it(
    'in any pieces, the service decides as the contract says, and stores exactly that',
    () =>
      forAll(anyExchange, async ({ requests, cuts }) => {
        await service.database.query('TRUNCATE plants');
        const bytes = Buffer.concat(requests.map((request) => bytesOf(service.token, request)));
        const responses = await sendInPieces(service.port, bytes, cuts, requests.length);
        const isClosed = responses.at(-1)?.headers['connection'] === 'close';
        expect(responses.length === requests.length || isClosed).toBe(true);
        const bodies = requests.map(({ body }) => body);
        await expectExchange(service, bodies, responses, LIMIT);
      }),
    PROPERTY_TIMEOUT_MS,
  );

  const anyPlant = fc.record({
    id: anyInt64,
    ...recordOf(TEXT_FIELDS, (field) =>
      isRequired(field) ? anyStorableText : fc.option(anyStorableText, { nil: null }),
    ),
  });

  it(
    'plants that are sent together survive from request to row to response',
    () =>
      forAll(
        fc.uniqueArray(anyPlant, { selector: ({ id }) => id, minLength: 1 }),
        async (plants) => {
          await service.database.query('TRUNCATE plants');
          const sent = plants.map(({ id: _id, ...texts }) =>
            Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== null)),
          );
          const responses = await Promise.all(
            plants.map((plant, i) =>
              service.post(`{"id":${plant.id},${JSON.stringify(sent[i]).slice(1)}`),
            ),
          );
          expect(responses.map(({ status, body }) => ({ status, body }))).toEqual(
            sent.map((body) => ({ status: 200, body })),
          );
          await expectRows(
            service,
            plants.map((plant) => ({ ...plant, id: String(plant.id) })),
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

  it(
    'clients, resets, cuts, kills and restarts leave rows that explain every response',
    async () => {
      const killable = await startBeside(service, settings);
      try {
        await forAll(
          anyHistoryWithKills,
          async (steps) => {
            expect(await playHistory(killable, steps)).toEqual([]);
          },
          // A history with kills takes as long as some ten others.
          Math.max(2, Math.round(RUNS / 10)),
        );
      } finally {
        await killable.close();
      }
    },
    PROPERTY_TIMEOUT_MS,
  );
});
