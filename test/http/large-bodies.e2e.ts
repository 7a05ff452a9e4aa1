import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openConnection, plantHead } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const BODY_LIMIT = 10_240;

/** Four of the largest bodies: more than 8 KiB for each of four requests. */
const TOTAL = 4 * BODY_LIMIT;

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

  it('leave no place for another one, however small, until one of them ends', async () => {
    for (let i = 0; i < 4; i++) await begin(`Content-Length: ${BODY_LIMIT}`, '{');
    await until(async () => (await bytes()) === TOTAL);
    expect(await service.post(plant(1))).toMatchObject({ status: 503, body: { error: 50301 } });
    clients[0]!.destroy();
    await until(async () => (await bytes()) === TOTAL - BODY_LIMIT);
    expect((await service.post(plant(1))).status).toBe(200);
    expect(await bytes()).toBe(TOTAL - BODY_LIMIT);
  });

  it('take place as they arrive if they come in chunks of unknown length', async () => {
    const chunk = `${(10_000).toString(16)}\r\n${'{'.padEnd(10_000)}\r\n`;
    for (let i = 0; i < 4; i++) await begin('Transfer-Encoding: chunked', i === 0 ? '' : chunk);
    await until(async () => (await bytes()) === 30_000);
    expect((await service.post(plant(1))).status).toBe(200);
    clients[0]!.write(chunk);
    await until(async () => (await bytes()) === 40_000);
    const body = plant(2).replace('"a"', `"${'a'.repeat(1000)}"`);
    expect(await service.post(body)).toMatchObject({ status: 503, body: { error: 50301 } });
  });
});
