import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CHUNKED, chunked, openConnection, plantHead } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

/** Four of the largest bodies are more than 16 KiB for each of five requests. */
const BODY_LIMIT = 20_490;

describe('bodies in flight that take all the memory they may', () => {
  let service: TestService;
  let clients: Socket[];

  const bytes = () => service.metric('plant_store_pending_body_bytes');
  const plant = (id: number) => `{"id":${id},"name":"a"}`;

  /** Sends the head of a request, and the beginning of its body. */
  async function begin(line: string, sent: string): Promise<void> {
    const client = await openConnection(service.port);
    client.write(plantHead(service.token, ['Content-Type: application/json', line]) + sent);
    clients.push(client);
  }

  beforeEach(async () => {
    service = await startService({ BODY_LIMIT: String(BODY_LIMIT), MAX_PENDING_REQUESTS: '5' });
    clients = [];
  });
  afterEach(async () => {
    for (const client of clients) client.destroy();
    await service.close();
  });

  it.each([
    ['of a known length', `Content-Length: ${BODY_LIMIT}`, (text: string) => text],
    ['in chunks', CHUNKED, (text: string) => chunked([text])],
  ])(
    '%s leave no place for another one, however small, until one of them ends',
    async (_kind, line, pack) => {
      const sent = BODY_LIMIT - 1;
      for (let i = 0; i < 3; i++) await begin(line, pack('{'.padEnd(sent)));
      await begin(line, '');
      await until(async () => (await bytes()) === 3 * sent);
      expect((await service.post(plant(1))).status).toBe(200);
      clients[3]!.write(pack('{'.padEnd(sent)));
      await until(async () => (await bytes()) === 4 * sent);
      expect(await service.post(plant(2))).toMatchObject({ status: 503, body: { error: 50301 } });
      clients[0]!.destroy();
      await until(async () => (await bytes()) === 3 * sent);
      expect((await service.post(plant(2))).status).toBe(200);
      expect(await bytes()).toBe(3 * sent);
    },
  );
});
