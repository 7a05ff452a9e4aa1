import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { generateAccessToken } from '../../src/auth/access-token.js';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { untilIdle } from '../setup/service/clean-state.js';
import { generator, printedSeed } from '../setup/model/random.js';
import {
  CHUNKED,
  openConnection,
  plantHead,
  plantRequest,
  readResponses,
} from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';
import { settled } from '../setup/time/settled.js';

const LIMIT = 5;

const WAVES = 30;
const CLIENTS = 100;

/** A request releases its resources when it ends, however its client disconnects. */
describe('a client that resets its connection', () => {
  let service: TestService;

  beforeEach(async () => {
    service = await startService({
      MAX_PENDING_REQUESTS: String(LIMIT),
      AUTH_FAILURES_PER_MINUTE: '1000000',
    });
  });
  afterEach(() => service.close());

  const requestOf = (token: string, id: number, name = 'a') =>
    plantRequest(token, JSON.stringify({ id, name }));

  async function expectAllReleased() {
    await untilIdle(service.app);
    // As many plants as the limit, one after the other: each must be admitted, so no place may be occupied forever.
    for (let id = 1; id <= LIMIT; id++) {
      expect(await service.post(`{"id":${-id},"name":"afterwards"}`)).toMatchObject({
        status: 200,
      });
    }
    expect(await service.metric('plant_store_pending_requests')).toBe(0);
  }

  it('while its token is looked up does not count as pending forever', async () => {
    const server = service.app.getHttpServer();
    const gone: Promise<unknown>[] = [];
    server.on('connection', (socket: Socket) => {
      gone.push(new Promise((resolve) => socket.once('close', resolve)));
    });
    let arrived = 0;
    server.on('request', () => arrived++);
    service.proxy.freeze();
    const sockets = await Promise.all(
      Array.from({ length: LIMIT }, () => openConnection(service.port)),
    );
    sockets.forEach((socket, i) => socket.write(requestOf(service.token, 100 + i)));
    await until(() => arrived === LIMIT);
    expect(await service.metric('plant_store_token_lookups')).toBe(1);
    for (const socket of sockets) socket.resetAndDestroy();
    await Promise.all(gone);
    service.proxy.restore();
    await expectAllReleased();
  });

  it('at any moment, thousands of times, leaves no resource occupied', async () => {
    const random = generator(printedSeed(`${WAVES * CLIENTS} connections that are reset`));
    const tokens = service.app.get(AccessTokensService);
    const disconnect = [
      (socket: Socket) => socket.resetAndDestroy(),
      (socket: Socket) => socket.destroy(),
      (socket: Socket) => socket.end(),
    ];

    /** Sends a random choice of requests, waits for a moment, and disconnects. */
    async function visit(unseen: string, id: number): Promise<void> {
      const socket = await openConnection(service.port);
      socket.on('error', () => undefined);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      const requests = [
        requestOf(unseen, id),
        requestOf(service.token, id + 1),
        requestOf(service.token, id + 1, 'b'),
        requestOf(generateAccessToken(), id),
        requestOf('wrong', id),
        plantHead(unseen, ['Content-Type: application/json', CHUNKED]),
        plantHead(service.token, ['Content-Type: text/plain', 'Content-Length: 5']) + 'hello',
        'GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n',
        'garbage\r\n\r\n',
      ];
      let bytes = '';
      for (let n = 0; n <= random(4); n++) bytes += requests[random(requests.length)]!;
      socket.write(random(3) === 0 ? bytes.slice(0, random(bytes.length)) : bytes);
      for (let turns = random(30); turns > 0; turns--) await settled();
      disconnect[random(disconnect.length)]!(socket);
      socket.resume();
      await closed;
    }

    for (let wave = 0; wave < WAVES; wave++) {
      const unseen = [
        await tokens.create(`even clients of wave ${wave}`),
        await tokens.create(`odd clients of wave ${wave}`),
      ].map(({ token }) => token);
      await Promise.all(
        Array.from({ length: CLIENTS }, (_, i) => visit(unseen[i % 2]!, wave * 1000 + i * 10)),
      );
    }
    await expectAllReleased();
  });
});

it('pipelined requests beyond the places are refused, in their order', async () => {
  const service = await startService({ MAX_PENDING_REQUESTS: '1' });
  const plants = Array.from({ length: 5 }, (_, id) =>
    plantRequest(service.token, JSON.stringify({ id, name: 'a' })),
  );
  // The token is in the cache now: the guards of the requests below run at once.
  await service.post('{"id":-1,"name":"a"}');
  const socket = await openConnection(service.port);
  socket.write(plants.join(''));
  const responses = await readResponses(socket, plants.length);
  expect(responses.map(({ status }) => status)).toEqual([200, 503, 503, 503, 503]);
  socket.destroy();
  await service.close();
});
