import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { untilIdle } from '../setup/service/clean-state.js';
import { postJson } from '../setup/http/post-plant.js';
import {
  CHUNKED,
  chunked,
  openConnection,
  plantHead,
  plantRequest,
} from '../setup/http/raw-http.js';
import { metricIn } from '../setup/service/metrics.js';
import { startService, type TestService } from '../setup/service/service.js';
import { holdClock } from '../setup/time/clock.js';
import { until } from '../setup/time/until.js';

/** How clients disconnect: curl --max-time, fetch, Go and nginx close their side; others reset the connection. */
const WAYS: [string, (socket: Socket) => unknown][] = [
  ['closes its side', (socket) => socket.end()],
  ['resets the connection', (socket) => socket.resetAndDestroy()],
];

/** The requests that were counted with a status. */
async function counted(service: TestService, status: number): Promise<number> {
  // Not by a request, whose token the database may have to check.
  const metrics = await service.app.get(Registry).metrics();
  const series = `plant_store_http_request_duration_seconds_count{route="/plants",method="POST",status="${status}",operation="createPlant"}`;
  return metricIn(metrics, series) ?? 0;
}

const pending = (service: TestService) => service.metric('plant_store_pending_requests');

describe('a client that gives up', () => {
  let service: TestService;
  let token: string;
  // A token in the cache stays valid, however long a test freezes the database.
  holdClock();

  beforeAll(async () => {
    service = await startService({ MAX_PENDING_REQUESTS: '2' });
    ({ token } = service);
    await service.post('{}');
  });
  afterEach(async () => {
    service.proxy.restore();
    // The database may still store plants whose clients have given up.
    await untilIdle(service.app);
    await service.database.query('TRUNCATE plants');
  });
  afterAll(() => service.close());

  it.each(WAYS)(
    'and %s while its plant waits: its place is free at once, and the plant is not stored',
    async (_way, leave) => {
      const gone = await counted(service, 499);
      service.proxy.freeze();
      const first = postJson(service.url, token, '{"id":1,"name":"sent"}');
      await until(async () => (await pending(service)) === 1);
      const impatient = await openConnection(service.port);
      impatient.on('error', () => undefined);
      impatient.write(plantRequest(token, '{"id":2,"name":"of nobody"}'));
      await until(async () => (await pending(service)) === 2);
      leave(impatient);
      await until(async () => (await counted(service, 499)) === gone + 1);
      expect(await pending(service)).toBe(1);
      const patient = postJson(service.url, token, '{"id":3,"name":"b"}');
      await until(async () => (await pending(service)) === 2);
      service.proxy.restore();
      expect((await first).status).toBe(200);
      expect((await patient).status).toBe(200);
      await untilIdle(service.app);
      const stored = (await service.storedPlants()).map(({ id }) => id);
      expect(stored).toEqual(['1', '3']);
    },
  );

  const BODIES: [string, string][] = [
    ['Content-Length: 22', '{"id":-2,"name":"a"'],
    [CHUNKED, chunked(['{"id":-2,"name":"a"}'])],
  ];
  it.each(WAYS.flatMap(([way, leave]) => BODIES.map((body) => [way, ...body, leave] as const)))(
    'and %s in a body with %s is counted as 499, and its plant is not stored',
    async (_way, line, part, leave) => {
      const [gone, failed] = [await counted(service, 499), await counted(service, 500)];
      const socket = await openConnection(service.port);
      socket.write(plantHead(token, ['Content-Type: application/json', line]) + part);
      await until(async () => (await pending(service)) === 1);
      leave(socket);
      await until(async () => (await counted(service, 499)) === gone + 1);
      expect(await counted(service, 500)).toBe(failed);
      await untilIdle(service.app);
      expect(await service.storedPlants()).toEqual([]);
    },
  );

  it('and resets the connection while its token is looked up gives back its place', async () => {
    const { token: unseen } = await service.app.get(AccessTokensService).create('unseen');
    const accepted = once(service.app.getHttpServer(), 'connection') as Promise<[Socket]>;
    service.proxy.freeze();
    const client = await openConnection(service.port);
    const [socket] = await accepted;
    client.write(plantRequest(unseen, '{"id":-3,"name":"a"}'));
    await until(async () => (await service.metric('plant_store_token_lookups')) === 1);
    client.resetAndDestroy();
    await new Promise((resolve) => socket.once('close', resolve));
    service.proxy.restore();
    await untilIdle(service.app);
  });

  it('and asks for a tunnel behind its plants gives back all of their places', async () => {
    service.proxy.freeze();
    const socket = await openConnection(service.port);
    const plants = [-3, -4].map((id) => plantRequest(token, `{"id":${id},"name":"a"}`));
    socket.write(plants.join(''));
    await until(async () => (await pending(service)) === 2);
    socket.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
    await until(async () => (await pending(service)) === 0);
  });
});
