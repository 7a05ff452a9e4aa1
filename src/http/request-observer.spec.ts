import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { holdClock } from '../../test/setup/time/clock.js';
import {
  requestBytes,
  startReceiver,
  type Exchange,
  type Receiver,
} from '../../test/setup/http/receiver.js';
import {
  badRequest,
  databaseUnavailable,
  internal,
  issuerUnavailable,
  overloaded,
  shuttingDown,
  tokenMissing,
} from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { sendError } from '../errors/send-error.js';
import { RequestObserver } from './request-observer.js';
import { whenClosed } from './when-closed.js';

const DURATION = 'plant_store_http_request_duration_seconds';
const HOUR_MS = 3_600_000;
const [INFO, WARN, ERROR] = [30, 40, 50];
const AVAILABLE = { level: INFO, msg: 'The database is available again.' };
const UUID = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);

const away = (cause = new Error('why')) =>
  new ServiceError(databaseUnavailable, 'It is away.', { cause });

let receiver: Receiver;
let registry: Registry;
let entries: object[];
let observer: RequestObserver;

beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());
beforeEach(() => {
  registry = new Registry();
  entries = [];
  const write = (line: string) => void entries.push(JSON.parse(line) as object);
  observer = new RequestObserver(pino({ base: null, timestamp: false }, { write }), registry);
});

async function observed(lines: string[] = [], start?: string): Promise<Exchange> {
  const exchange = await receiver.send(requestBytes([...lines, 'Connection: close'], '', start));
  let calls = 0;
  observer.observe(exchange.request, exchange.response, () => calls++);
  expect(calls).toBe(1);
  return exchange;
}

const closed = ({ response }: Exchange) =>
  new Promise<void>((resolve) => whenClosed(response, resolve));

async function end(exchange: Exchange, status = 200): Promise<string> {
  exchange.response.statusCode = status;
  exchange.response.end();
  await closed(exchange);
  return exchange.received;
}

async function fail(exchange: Exchange, error: ServiceError): Promise<void> {
  sendError(exchange.request, exchange.response, error);
  await closed(exchange);
}

/** As Express does for the route that it found. */
const setRoute = ({ request }: Exchange, path: string) =>
  Object.assign(request, { route: { path } });

describe('the log entry of a request', () => {
  const advance = holdClock();

  it('is written once, when the response is closed, with what an operator needs', async () => {
    const exchange = await observed(['X-Request-Id: order-1']);
    setRoute(exchange, '/plants');
    exchange.request.user = { name: 'gardener' };
    await advance(12.34);
    expect(entries).toEqual([]);
    await end(exchange);
    expect(entries).toEqual([
      {
        level: INFO,
        msg: 'request',
        requestId: 'order-1',
        method: 'POST',
        route: '/plants',
        status: 200,
        duration: 12.3,
        token: 'gardener',
      },
    ]);
  });

  it('has the route "unmatched", the path and no token when there is none', async () => {
    const exchange = await observed(['Authorization: Bearer secret'], 'DELETE /a?b=c HTTP/1.1');
    await end(exchange, 404);
    expect(entries).toEqual([
      {
        level: INFO,
        msg: 'request',
        requestId: UUID,
        method: 'DELETE',
        route: 'unmatched',
        path: '/a',
        status: 404,
        duration: 0,
      },
    ]);
  });

  it.each([
    ['at most a hundred characters of a path', '/ab'.repeat(34), `${'/ab'.repeat(33)}/…`],
    ['no long part of a path, which may be a JWT', `/p/${'a'.repeat(37)}/x`, '/p/…/x'],
    ['nothing from a token on', '/p/Plantstore_0/x', '/p/…'],
    ['a part of 36 characters, as a UUID has', `/${'a'.repeat(36)}`, `/${'a'.repeat(36)}`],
  ])('has %s', async (_what, sent, path) => {
    await end(await observed([], `GET ${sent} HTTP/1.1`), 404);
    expect(entries).toMatchObject([{ path }]);
  });

  it.each([
    ['back', -HOUR_MS],
    ['ahead', HOUR_MS],
  ])('has the duration, even if the date is set %s meanwhile', async (_how, change) => {
    const exchange = await observed();
    await advance.changeDate(change);
    await advance(20);
    await end(exchange);
    expect(entries).toMatchObject([{ duration: 20 }]);
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
    ['the fault of the client is information', INFO, tokenMissing(), {}],
    ['overload is a warning', WARN, overloaded(), {}],
    ['a service that stops is information', INFO, shuttingDown(), {}],
    [
      'a database that is away is an error, with the message of its cause',
      ERROR,
      away(cause),
      { cause: 'the cause' },
    ],
    [
      'an identity provider that is away is an error, with the message of its cause',
      ERROR,
      issuerUnavailable(cause),
      { cause: 'the cause' },
    ],
    [
      'a fault of the service is an error, with its cause',
      ERROR,
      internal(cause),
      { err: expect.objectContaining({ message: 'the cause' }), msg: internal().message },
    ],
  ])('for %s', async (_kind, level, error, more) => {
    const exchange = await observed(['X-Request-Id: a']);
    await fail(exchange, error);
    expect(entries).toEqual([
      {
        level,
        msg: 'request',
        requestId: 'a',
        method: 'POST',
        route: 'unmatched',
        path: expect.any(String),
        status: Math.floor(error.code / 100),
        duration: 0,
        error: error.code,
        ...more,
      },
    ]);
  });
});

describe('the end of an outage of the database', () => {
  async function onRoute(path: string, outcome: ServiceError | number): Promise<void> {
    const exchange = await observed();
    setRoute(exchange, path);
    await (typeof outcome === 'number' ? end(exchange, outcome) : fail(exchange, outcome));
  }

  it('has one entry, after the first success on a route on which it was away', async () => {
    await onRoute('/plants', away());
    await onRoute('/plants', overloaded());
    await onRoute('/plants', 400);
    await onRoute('/health/live', 200);
    entries.length = 0;
    await onRoute('/plants', 200);
    await onRoute('/plants', 200);
    const success = expect.objectContaining({ route: '/plants', status: 200 });
    expect(entries).toEqual([success, AVAILABLE, success]);
  });

  it('has an entry each time', async () => {
    for (let i = 0; i < 2; i++) {
      await onRoute('/plants', away());
      await onRoute('/plants', 200);
    }
    expect(entries.filter((entry) => !('requestId' in entry))).toEqual([AVAILABLE, AVAILABLE]);
  });

  it('has none when the identity provider was away', async () => {
    await onRoute('/plants', issuerUnavailable());
    await onRoute('/plants', 200);
    expect(entries).not.toContainEqual(AVAILABLE);
  });
});

describe('the id of a request', () => {
  const idFor = async (lines: string[]) => {
    const response = await end(await observed(lines));
    const [, id] = /^X-Request-Id: (.*)\r$/m.exec(response)!;
    expect(entries).toMatchObject([{ requestId: id }]);
    return id;
  };

  it.each(['a', 'A-1_b.c:d', 'x'.repeat(128)])('is %s if the client sent that', async (id) => {
    expect(await idFor([`X-Request-Id: ${id}`])).toBe(id);
  });

  it.each([
    ['empty', ''],
    ['with a space', 'a b'],
    ['with a quote', 'a"'],
    ['with another sign', 'a=b'],
    ['with a brace at the start', '{a'],
    ['of braces', '{}'],
    ['too long', 'x'.repeat(129)],
  ])('is a new one if the client sent one %s', async (_kind, id) => {
    expect(await idFor([`X-Request-Id: ${id}`])).toEqual(UUID);
  });

  it('is a new one if the client sent none or two', async () => {
    expect(await idFor([])).toEqual(UUID);
    entries.length = 0;
    expect(await idFor(['X-Request-Id: a', 'X-Request-Id: b'])).toEqual(UUID);
  });
});

/** The lines of a metric that are not its explanation. */
const linesOf = async (name: string) =>
  (await registry.metrics()).split('\n').filter((line) => line.startsWith(name));

describe('the time that requests take', () => {
  const advance = holdClock();

  async function handle(start: string, status: number, route?: string): Promise<void> {
    const exchange = await observed([], start);
    if (route !== undefined) setRoute(exchange, route);
    await advance(20);
    await end(exchange, status);
  }

  it('is measured in seconds by route, method and status', async () => {
    await handle('POST /plants HTTP/1.1', 200, '/plants');
    await handle('POST /plants HTTP/1.1', 200, '/plants');
    await handle('GET /metrics HTTP/1.1', 200, '/metrics');
    await handle('HEAD /metrics HTTP/1.1', 401, '/metrics');
    expect(await linesOf(`${DURATION}_count`)).toEqual([
      `${DURATION}_count{route="/plants",method="POST",status="200",operation=""} 2`,
      `${DURATION}_count{route="/metrics",method="GET",status="200",operation=""} 1`,
      `${DURATION}_count{route="/metrics",method="HEAD",status="401",operation=""} 1`,
    ]);
    expect((await linesOf(`${DURATION}_sum`))[0]).toBe(
      `${DURATION}_sum{route="/plants",method="POST",status="200",operation=""} 0.04`,
    );
  });
});

it('a response to what is no request has an entry with the id for its header, and is not measured', async () => {
  const requestId = observer.logUnparsed(badRequest('The request is not valid HTTP.'));
  expect(requestId).toEqual(UUID);
  expect(entries).toEqual([
    { level: INFO, msg: 'request', requestId, route: 'unparsed', status: 400, error: 40000 },
  ]);
  expect(await linesOf(DURATION)).toEqual([]);
});
