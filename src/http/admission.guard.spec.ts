import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { Registry } from 'prom-client';
import {
  requestBytes,
  startReceiver,
  type Exchange,
  type Receiver,
} from '../../test/setup/http/receiver.js';
import { readConfig } from '../config/config.js';
import { overloaded } from '../errors/errors.js';
import { ConnectionClosed } from '../errors/service-error.js';
import { AdmissionGuard, PendingRequests } from './admission.guard.js';
import { whenClosed } from './when-closed.js';

describe('the limit of requests in flight', () => {
  let receiver: Receiver;
  let registry: Registry;
  let guard: AdmissionGuard;

  beforeAll(async () => {
    receiver = await startReceiver();
  });
  afterAll(() => receiver.close());

  beforeEach(() => {
    registry = new Registry();
    guard = new AdmissionGuard(
      new PendingRequests(readConfig({ MAX_PENDING_REQUESTS: '2' }), registry),
    );
  });

  const send = () => receiver.send(requestBytes([]));
  const admit = ({ request, response }: Exchange) =>
    guard.canActivate(new ExecutionContextHost([request, response]));
  const closed = ({ response }: Exchange) =>
    new Promise<void>((resolve) => whenClosed(response, resolve));
  const inFlight = async () =>
    (await registry.getSingleMetric('plant_store_pending_requests')!.get()).values[0]!.value;

  it.each<[string, (exchange: Exchange) => unknown]>([
    ['has its response', ({ response }) => response.end()],
    ['has lost its client', ({ client }) => client.destroy()],
  ])('admits another request only when one %s', async (_end, end) => {
    const first = await send();
    expect(admit(first)).toBe(true);
    expect(admit(await send())).toBe(true);
    const refused = await send();
    expect(() => admit(refused)).toThrow(expect.objectContaining({ code: overloaded.code }));
    expect(await inFlight()).toBe(2);
    end(first);
    await closed(first);
    expect(await inFlight()).toBe(1);
    expect(admit(await send())).toBe(true);
  });

  it('takes no place for a request whose client has closed its connection already', async () => {
    const gone = await send();
    gone.client.destroy();
    await closed(gone);
    expect(() => admit(gone)).toThrow(ConnectionClosed);
    expect(await inFlight()).toBe(0);
  });
});
