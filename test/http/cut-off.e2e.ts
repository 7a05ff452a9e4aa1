import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { untilIdle } from '../setup/service/clean-state.js';
import { CHUNKED, chunked, openConnection, plantHead } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

/** The requests that were counted with a status. */
async function counted(status: number): Promise<number> {
  const { body } = await service.request('/metrics', {
    headers: { authorization: `Bearer ${service.token}` },
  });
  const series = `plant_store_http_request_duration_seconds_count{route="/plants",method="POST",status="${status}"} `;
  const line = (body as string).split('\n').find((text) => text.startsWith(series));
  return Number(line?.slice(series.length) ?? 0);
}

it.each([
  ['Content-Length: 22', '{"id":1,"name":"a"'],
  [CHUNKED, chunked(['{"id":1,"name":"a"}'])],
])(
  'a body with %s that is cut off by a reset is not stored, and counts as 499',
  async (line, part) => {
    const [gone, failed] = [await counted(499), await counted(500)];
    const socket = await openConnection(service.port);
    socket.write(plantHead(service.token, ['Content-Type: application/json', line]) + part);
    await until(async () => (await service.metric('plant_store_pending_requests')) === 1);
    socket.resetAndDestroy();
    await until(async () => (await counted(499)) === gone + 1);
    expect(await counted(500)).toBe(failed);
    await untilIdle(service.app);
    expect(await service.storedPlants()).toEqual([]);
  },
);
