import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { startCollector } from '../../test/setup/http/collector.js';
import {
  requestBytes,
  startReceiver,
  type Exchange,
  type Receiver,
} from '../../test/setup/http/receiver.js';
import { holdClock } from '../../test/setup/time/clock.js';
import {
  databaseUnavailable,
  internal,
  issuerUnavailable,
  overloaded,
  RowsUnavailableError,
  shuttingDown,
  tokenInvalid,
  tokenMissing,
} from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { sendError } from '../errors/send-error.js';
import { startTracing } from '../tracing/tracing.js';
import { RequestObserver } from './request-observer.js';
import { whenClosed } from './when-closed.js';

const [INFO, WARN, ERROR] = [30, 40, 50];
const AVAILABLE = { level: INFO, msg: 'The database is available again.' };

let receiver: Receiver;
let registry: Registry;
let entries: object[];
let observer: RequestObserver;

const logger = pino(
  { base: null, timestamp: false },
  { write: (line: string) => void entries.push(JSON.parse(line) as object) },
);

beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());
beforeEach(() => {
  entries = [];
  registry = new Registry();
  observer = new RequestObserver(logger, registry);
});

async function observed(start?: string): Promise<Exchange> {
  const exchange = await receiver.send(requestBytes(['Connection: close'], '', start));
  observer.observe(exchange.request, exchange.response, () => undefined);
  return exchange;
}

const closed = ({ response }: Exchange) =>
  new Promise<void>((resolve) => whenClosed(response, resolve));

async function end(exchange: Exchange, outcome: ServiceError | number): Promise<void> {
  const { request, response } = exchange;
  if (typeof outcome === 'number') response.status(outcome).end();
  else sendError(request, response, outcome);
  await closed(exchange);
}

/** Handles a request as the route that Express found. */
async function onRoute(path: string, outcome: ServiceError | number): Promise<void> {
  const exchange = await observed();
  Object.assign(exchange.request, { route: { path } });
  await end(exchange, outcome);
}

describe('the log entry of a request', () => {
  it.each([
    ['at most a hundred characters of a path', '/ab'.repeat(34), `${'/ab'.repeat(33)}/…`],
    ['no long part of a path, which may be a JWT', `/p/${'a'.repeat(37)}/x`, '/p/…/x'],
    ['nothing from a token on', '/p/Plantstore_0/x', '/p/…'],
    ['a part of 36 characters, as a UUID has', `/${'a'.repeat(36)}?b`, `/${'a'.repeat(36)}`],
  ])('has %s that no route has', async (_what, sent, path) => {
    await end(await observed(`GET ${sent} HTTP/1.1`), 404);
    expect(entries).toMatchObject([{ route: 'unmatched', path }]);
  });

  it('has the status 499 when the client closed the connection before the response', async () => {
    const exchange = await observed();
    exchange.client.destroy();
    await closed(exchange);
    expect(entries).toMatchObject([{ status: 499 }]);
  });

  it('has the status that was sent when the client closed the connection during it', async () => {
    const exchange = await observed();
    exchange.response.writeHead(202).flushHeaders();
    exchange.client.destroy();
    await closed(exchange);
    expect(entries).toMatchObject([{ status: 202 }]);
  });

  const cause = new Error('the cause');

  it.each([
    ['the fault of the client', INFO, tokenMissing(), {}],
    ['a token that is wrong, with the reason', INFO, tokenInvalid('expired'), { cause: 'expired' }],
    ['a service that stops', INFO, shuttingDown(), {}],
    ['overload', WARN, overloaded(), {}],
    ['a database that is away', ERROR, databaseUnavailable(cause), { cause: 'the cause' }],
    ['an issuer that is away', ERROR, issuerUnavailable(cause), { cause: 'the cause' }],
    [
      'a fault of the service, with its stack',
      ERROR,
      internal(cause),
      { err: expect.objectContaining({ message: 'the cause' }), msg: internal().message },
    ],
  ])('for %s has the level %d', async (_kind, level, error, more) => {
    await onRoute('/plants', error);
    expect(entries).toEqual([
      {
        level,
        msg: 'request',
        requestId: expect.any(String),
        method: 'POST',
        route: '/plants',
        status: error.status,
        duration: expect.any(Number),
        error: error.code,
        ...more,
      },
    ]);
  });
});

describe('the time that a request takes', () => {
  const advance = holdClock();

  it('is in milliseconds in its log entry, and in seconds in its metric', async () => {
    const exchange = await observed();
    await advance(20.5);
    await end(exchange, 200);
    expect(entries).toMatchObject([{ duration: 20.5 }]);
    expect(await registry.metrics()).toMatch(
      /^plant_store_http_request_duration_seconds_sum.* 0\.0205$/m,
    );
  });
});

describe('the end of an outage of the database', () => {
  const ends = () => entries.filter((entry) => !('requestId' in entry));

  it('has one entry, after the first success on a route on which it was away', async () => {
    for (let outage = 1; outage <= 2; outage++) {
      for (const outcome of [databaseUnavailable(), overloaded(), 400]) {
        await onRoute('/plants', outcome);
      }
      await onRoute('/health/live', 200);
      expect(ends()).toHaveLength(outage - 1);
      await onRoute('/plants', 200);
      await onRoute('/plants', 200);
      expect(ends()).toEqual(Array(outage).fill(AVAILABLE));
    }
  });

  it.each([
    ['the identity provider was away', issuerUnavailable()],
    ['a row was locked', new RowsUnavailableError(new Error('locked'))],
  ])('has none when only %s', async (_kind, error) => {
    await onRoute('/plants', error);
    await onRoute('/plants', 200);
    expect(ends()).toEqual([]);
  });
});

it('the span of a request says what its log entry says, and has failed from the status 500 on', async () => {
  const collector = await startCollector();
  const stop = await startTracing(collector.url, logger);
  for (const status of [200, 499, 500]) await onRoute('/plants', status);
  await stop();
  await collector.close();
  expect(collector.spans).toEqual(
    [200, 499, 500].map((status, i) =>
      expect.objectContaining({
        name: 'POST /plants',
        kind: 2,
        traceId: (entries[i] as { traceId: string }).traceId,
        status: { code: status < 500 ? 0 : 2 },
        attributes: [
          { key: 'http.request.method', value: { stringValue: 'POST' } },
          { key: 'http.route', value: { stringValue: '/plants' } },
          { key: 'http.response.status_code', value: { intValue: status } },
        ],
      }),
    ),
  );
});
