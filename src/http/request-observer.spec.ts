import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { holdClock } from '../../test/setup/time/clock.js';
import { openConnection } from '../../test/setup/http/raw-http.js';
import {
  requestBytes,
  startReceiver,
  type Exchange,
  type Receiver,
} from '../../test/setup/http/receiver.js';
import { ErrorCode } from '../errors/error-codes.js';
import { sendError } from '../errors/send-error.js';
import {
  internal,
  invalidHttp,
  issuerUnavailable,
  overloaded,
  ServiceError,
  shuttingDown,
  tokenMissing,
} from '../errors/service-error.js';
import { RequestObserver, sendUnparsed } from './request-observer.js';
import { whenClosed } from './when-closed.js';

const DURATION = 'plant_store_http_request_duration_seconds';
const HOUR_MS = 3_600_000;
const [INFO, WARN, ERROR] = [30, 40, 50];
const UUID = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);

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

  it('has at most a hundred characters of a path', async () => {
    for (const length of [99, 100]) {
      await end(await observed([], `GET /${'a'.repeat(length)} HTTP/1.1`), 404);
    }
    const path = `/${'a'.repeat(99)}`;
    expect(entries).toMatchObject([{ path }, { path: `${path}…` }]);
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
  const away = new ServiceError(ErrorCode.databaseUnavailable, 'It is away.', { cause });
  const withCause = { err: expect.objectContaining({ message: 'the cause' }) };

  it.each([
    ['the fault of the client is information', INFO, tokenMissing(), {}],
    ['overload is a warning', WARN, overloaded(), {}],
    ['a service that stops is information', INFO, shuttingDown(), {}],
    [
      'a fault of the service is an error, with its cause',
      ERROR,
      internal(cause),
      { ...withCause, msg: internal().message },
    ],
  ])('for %s', async (_kind, level, error, more) => {
    const exchange = await observed(['X-Request-Id: a']);
    sendError(exchange.request, exchange.response, error);
    await closed(exchange);
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

  it.each([
    ['database', away],
    ['identity provider', issuerUnavailable(cause)],
  ])(
    'while the %s is away is an error, and its cause has another entry, without the advice to the client',
    async (_what, error) => {
      const exchange = await observed();
      sendError(exchange.request, exchange.response, error);
      await closed(exchange);
      const msg = error.message.replace(' Send the request again in a moment.', '');
      expect(entries).toEqual([
        expect.objectContaining({ level: ERROR, msg: 'request', error: error.code, status: 503 }),
        { level: ERROR, msg, error: error.code, count: 1, ...withCause },
      ]);
      expect(entries[0]).not.toHaveProperty('err');
    },
  );
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
      `${DURATION}_count{route="/plants",method="POST",status="200"} 2`,
      `${DURATION}_count{route="/metrics",method="GET",status="200"} 1`,
      `${DURATION}_count{route="/metrics",method="HEAD",status="401"} 1`,
    ]);
    expect((await linesOf(`${DURATION}_sum`))[0]).toBe(
      `${DURATION}_sum{route="/plants",method="POST",status="200"} 0.04`,
    );
  });

  it('has one label for all unknown routes and methods, so that no client makes labels', async () => {
    await handle('DELETE /a HTTP/1.1', 404);
    await handle('PUT /b HTTP/1.1', 404);
    expect(await linesOf(`${DURATION}_count`)).toEqual([
      `${DURATION}_count{route="unmatched",method="other",status="404"} 2`,
    ]);
  });

  it('is counted from a millisecond to the longest time that a request may take', async () => {
    await handle('POST /plants HTTP/1.1', 200, '/plants');
    const buckets = (await linesOf(`${DURATION}_bucket`)).map((line) =>
      /le="(.*?)".* (\d)$/.exec(line)!.slice(1),
    );
    expect(buckets.at(0)).toEqual(['0.001', '0']);
    expect(buckets).toContainEqual(['0.025', '1']);
    expect(buckets.slice(-2)).toEqual([
      ['10', '1'],
      ['+Inf', '1'],
    ]);
  });

  it('is explained', async () => {
    expect(await registry.metrics()).toContain(
      `# HELP ${DURATION} Time from the header of a request to the end of its response.\n`,
    );
  });
});

describe('an error response that no middleware sees', () => {
  async function refuse(lines: string[] = [], error = invalidHttp()): Promise<string> {
    const { response, received } = await receiver.send(
      requestBytes([...lines, 'Connection: close']),
    );
    sendUnparsed(receiver.server, response, error);
    return received;
  }

  beforeEach(() => {
    receiver.server.removeAllListeners('unparsed');
    observer.watch(receiver.server);
  });

  it('is an Error like all others, with the header fields that the middlewares set', async () => {
    const response = await refuse(['X-Request-Id: order-1']);
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(response).toContain('\r\nX-Request-Id: order-1\r\n');
    expect(response).toContain('\r\nX-Content-Type-Options: nosniff\r\n');
    expect(response).toContain(
      '\r\n\r\n{"error":40000,"message":"The request is not valid HTTP."}',
    );
  });

  it('has a log entry with the id in the response', async () => {
    const response = await refuse();
    const [, requestId] = /\r\nX-Request-Id: ([0-9a-f-]{36})\r\n/.exec(response)!;
    expect(entries).toEqual([
      { level: 30, msg: 'request', requestId, route: 'unparsed', status: 400, error: 40000 },
    ]);
  });

  it('has a log entry with the level of its error', async () => {
    await refuse([], overloaded());
    await refuse([], internal(new Error('why')));
    expect(entries).toMatchObject([
      { level: 40, route: 'unparsed', error: 50301 },
      { level: 50, route: 'unparsed', error: 50000, err: { message: 'why' } },
    ]);
  });

  it('is counted, with no time that it took', async () => {
    await refuse();
    const labels = 'route="unparsed",method="other",status="400"';
    expect(await linesOf(`${DURATION}_count`)).toEqual([`${DURATION}_count{${labels}} 1`]);
    expect(await linesOf(`${DURATION}_sum`)).toEqual([`${DURATION}_sum{${labels}} 0`]);
  });
});

it('connections beyond the limit are counted', async () => {
  const limited = await startReceiver();
  limited.server.maxConnections = 1;
  observer.watch(limited.server);
  expect(await linesOf('plant_store_connections')).toEqual([
    'plant_store_connections_dropped_total 0',
  ]);
  const accepted = once(limited.server, 'connection');
  const first = await openConnection(limited.port);
  await accepted;
  const dropped = once(limited.server, 'drop');
  const second = await openConnection(limited.port);
  await dropped;
  expect(await registry.metrics()).toContain(
    [
      '# HELP plant_store_connections_dropped_total Connections that were closed because there were too many.',
      '# TYPE plant_store_connections_dropped_total counter',
      'plant_store_connections_dropped_total 1',
    ].join('\n'),
  );
  for (const socket of [first, second]) socket.destroy();
  await limited.close();
});
