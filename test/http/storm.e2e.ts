import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { untilIdle } from '../setup/service/clean-state.js';
import { noResponse } from '../setup/http/fetch-documented.js';
import { postJson } from '../setup/http/post-plant.js';
import { generator, printedSeed } from '../setup/model/random.js';
import { CHUNKED, openConnection, plantHead, plantRequest } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';
import { untilNothingHeld } from '../setup/time/until.js';
import { settled } from '../setup/time/settled.js';

const WAVES = 12;
const CLIENTS = 50;

/** A script of the page, larger than the buffers of a connection. */
const LARGE = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n';

/** Whatever a request takes is given back when it ends, however its client leaves. */
describe('a storm of clients that leave', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({
      MAX_PENDING_REQUESTS: '20',
      KEEP_ALIVE_TIMEOUT_MS: '500',
      REQUEST_TIMEOUT_MS: '1000',
      // Longer than this test waits: the timer of a statement must end with it.
      DATABASE_TIMEOUT_MS: '60000',
      // All tokens of the storm are valid, so lookups that are never given back would use this limit up.
      AUTH_FAILURES_PER_MINUTE: '10',
    });
    // The service disconnects clients that never read.
    service.app.getHttpServer().timeout = 500;
  });
  afterAll(() => service.close());

  const plant = (token: string, id: number, name = 'a') =>
    plantRequest(token, JSON.stringify({ id, name }));
  const requestsOf = (token: string, id: number) => [
    plant(token, id),
    plant(token, id, 'b'),
    plantHead(token, ['Content-Type: application/json', CHUNKED]),
    plantHead(token, ['Content-Type: text/plain', 'Content-Length: 5']) + 'hello',
    'GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n',
    'garbage\r\n\r\n',
  ];
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn++) await settled();
  };
  /** Timers that keep the process alive, without those of the pool, which has one for each idle connection. */
  const timers = async () => {
    const { values } = await service.app
      .get(Registry)
      .getSingleMetric('plant_store_database_connections')!
      .get();
    const idle = values.find(({ labels }) => labels['state'] === 'idle')!.value;
    return process.getActiveResourcesInfo().filter((it) => it === 'Timeout').length - idle;
  };
  const connections = () =>
    new Promise<number>((resolve, reject) =>
      service.app
        .getHttpServer()
        .getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
    );

  it('leaves no place, lookup, plant in the queue, connection or timer behind', async () => {
    const random = generator(printedSeed(`a storm of ${WAVES * CLIENTS} clients`));
    const tokens = service.app.get(AccessTokensService);
    const before = await timers();
    const sockets: Socket[] = [];

    const connect = async (bytes: string) => {
      const socket = await openConnection(service.port);
      sockets.push(socket.on('error', () => undefined));
      socket.write(random(3) === 0 ? bytes.slice(0, random(bytes.length)) : bytes);
      return socket;
    };
    const disconnect = [
      (socket: Socket) => socket.resetAndDestroy(),
      (socket: Socket) => socket.destroy(),
      (socket: Socket) => socket.end().resume(),
    ];
    const leaveAtAnyMoment = async (token: string, id: number) => {
      const requests = requestsOf(token, id);
      const sent = Array.from({ length: 1 + random(4) }, () => requests[random(requests.length)]!);
      const socket = await connect(sent.join(''));
      await turns(random(30));
      disconnect[random(disconnect.length)]!(socket);
    };
    const leave: readonly ((token: string, id: number) => Promise<unknown>)[] = [
      leaveAtAnyMoment,
      leaveAtAnyMoment,
      async (token, id) => {
        // A socket without a listener for data never reads.
        await connect(plant(token, id) + LARGE.repeat(4) + plant(token, id + 1));
      },
      async (token, id) => {
        const controller = new AbortController();
        const body = JSON.stringify({ id, name: 'a' });
        const response = postJson(service.url, token, body, controller.signal).catch(noResponse);
        await turns(random(30));
        controller.abort();
        await response;
      },
    ];

    for (let wave = 0; wave < WAVES; wave++) {
      const { token: unseen } = await tokens.create(`wave ${wave}`);
      if (wave % 3 === 1) service.proxy.freeze();
      if (wave % 3 === 2) service.proxy.cut();
      const clients = Array.from({ length: CLIENTS }, (_, i) =>
        leave[random(leave.length)]!(
          random(2) === 0 ? unseen : service.token,
          wave * 1000 + i * 10,
        ),
      );
      await turns(random(30));
      await Promise.all(clients);
      service.proxy.restore();
    }

    await untilIdle(service.app);
    await untilNothingHeld(async () => {
      const [open, running] = [await connections(), (await timers()) - before];
      return [
        ...(open > 0 ? [`${open} connections`] : []),
        ...(running > 0 ? [`${running} timers`] : []),
      ];
    });
    for (const socket of sockets) socket.destroy();
    // The last request does not concern the timeouts, and a busy machine must not cause one.
    Object.assign(service.app.getHttpServer(), {
      timeout: 0,
      requestTimeout: 0,
      headersTimeout: 0,
    });
    const authorization = `Bearer ${(await tokens.create('afterwards')).token}`;
    expect(await service.post('{"id":-1,"name":"a"}', { authorization })).toMatchObject({
      status: 200,
    });
  });
});
