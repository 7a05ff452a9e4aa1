import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { holdClock } from '../../test/setup/time/clock.js';
import { openConnection } from '../../test/setup/http/raw-http.js';
import { requestBytes, startReceiver, type Receiver } from '../../test/setup/http/receiver.js';
import { internal, invalidHttp, overloaded } from '../errors/service-error.js';
import { RequestObserver, sendUnparsed } from './request-observer.js';
import { whenClosed } from './when-closed.js';

const DURATION = 'plant_store_http_request_duration_seconds';

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

/** The lines of a metric that are not its explanation. */
const linesOf = async (name: string) =>
  (await registry.metrics()).split('\n').filter((line) => line.startsWith(name));

describe('the time that requests take', () => {
  const advance = holdClock();

  async function handle(start: string, status: number, route?: string): Promise<void> {
    const { request, response, received } = await receiver.send(
      requestBytes(['Connection: close'], '', start),
    );
    observer.observe(request, response, () => undefined);
    // As Express does for the route that it found.
    if (route !== undefined) Object.assign(request, { route: { path: route } });
    await advance(20);
    response.statusCode = status;
    response.end();
    await new Promise<void>((resolve) => whenClosed(response, resolve));
    await received;
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
