import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { stopApp } from '../../src/shutdown.js';
import { replaceWaits } from '../setup/time/held-waits.js';
import { beginPlant, openConnection, readResponses, sendRaw } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';

/** Longer than any test. */
const NEVER_MS = 600_000;

const BODY = '{"id":1,"name":"a"}';

describe('a service that stops', () => {
  let service: TestService;

  beforeEach(async () => {
    service = await startService();
  });
  afterEach(() => service.close());

  it('is not ready and says why from the first moment, also while the database hangs, and stores plants until the delay is over', async () => {
    const delay = Promise.withResolvers<void>();
    const restoreWaits = replaceWaits(() => delay.promise);
    const stopped = stopApp(service.app, { shutdownDelay: 300, shutdownTimeout: NEVER_MS });
    restoreWaits();
    service.proxy.freeze();
    const ready = await service.request('/health/ready');
    service.proxy.restore();
    expect(ready).toMatchObject({ status: 503, body: { error: 50302 } });
    expect(ready.headers.get('connection')).toBe('close');
    // It would lead the client back to this instance.
    expect(ready.headers.get('retry-after')).toBeNull();
    const bad = await sendRaw(service.port, 'GET /health/live HTTP/1.1\r\n\r\n');
    expect(bad).toMatchObject({ status: 400, headers: { connection: 'close' } });
    expect(await service.post(BODY)).toMatchObject({ status: 200 });
    delay.resolve();
    await stopped;
  });

  it('refuses with 50302 a plant whose body is still to come at the deadline, and stores nothing', async () => {
    const socket = await openConnection(service.port);
    await beginPlant(socket, service.token, BODY);
    const stopped = stopApp(service.app, { shutdownDelay: 0, shutdownTimeout: 0 });
    const [response] = await readResponses(socket);
    expect(response).toMatchObject({ status: 503, headers: { connection: 'close' } });
    expect(JSON.parse(response!.body)).toMatchObject({ error: 50302 });
    await stopped;
    expect(await service.storedPlants()).toEqual([]);
  });
});
