import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import {
  requestBytes,
  startReceiver,
  type Exchange,
  type Receiver,
} from '../../test/setup/http/receiver.js';
import { readConfig } from '../config/config.js';
import { ErrorCode } from '../errors/error-codes.js';
import { PendingBodies } from './pending-bodies.js';
import { whenClosed } from './when-closed.js';

describe('the limit of the bodies in flight', () => {
  let receiver: Receiver;
  let registry: Registry;
  let bodies: PendingBodies;

  beforeAll(async () => {
    receiver = await startReceiver();
  });
  afterAll(() => receiver.close());

  beforeEach(() => {
    registry = new Registry();
    bodies = new PendingBodies(readConfig({ MAX_PENDING_REQUESTS: '10' }), registry);
  });

  const send = () => receiver.send(requestBytes([]));
  const closed = ({ response }: Exchange) =>
    new Promise<void>((resolve) => whenClosed(response, resolve));
  const bytes = async () =>
    (await registry.getSingleMetric('plant_store_pending_body_bytes')!.get()).values[0]!.value;
  const OVERLOADED = expect.objectContaining({ code: ErrorCode.overloaded });

  it.each([
    ['16 KiB for each request in flight', {}, 65_536, 16_384_000],
    ['four of the largest bodies', { MAX_PENDING_REQUESTS: '15' }, 65_536, 262_144],
    ['four of the largest bodies, however large', { BODY_LIMIT: '16mb' }, 16_777_216, 67_108_864],
  ])('is %s', (_, env, limit, total) => {
    expect(new PendingBodies(readConfig(env), new Registry())).toMatchObject({ limit, total });
  });

  it('is the one of all bodies together', async () => {
    bodies.open((await send()).response)(bodies.total - 10);
    const count = bodies.open((await send()).response);
    count(4);
    expect(() => count(7)).toThrow(OVERLOADED);
    count(6);
    expect(await bytes()).toBe(bodies.total);
  });

  it.each([
    ['the response has been sent', ({ response }: Exchange) => response.end()],
    ['the client closed the connection', ({ client }: Exchange) => client.destroy()],
  ])('allows as many bytes again when %s', async (_, end) => {
    const first = await send();
    const count = bodies.open(first.response);
    count(bodies.total - 1);
    count(1);
    const second = bodies.open((await send()).response);
    expect(() => second(1)).toThrow(OVERLOADED);
    end(first);
    await closed(first);
    expect(await bytes()).toBe(0);
    second(1);
    expect(await bytes()).toBe(1);
  });

  it('counts nothing for a client that has closed the connection, which would never be subtracted', async () => {
    const gone = await send();
    const before = bodies.open(gone.response);
    gone.client.destroy();
    await closed(gone);
    for (const count of [before, bodies.open(gone.response)]) {
      expect(() => count(1)).toThrow('The client closed the connection.');
    }
    expect(await bytes()).toBe(0);
  });

  it('is checked for a body that is announced, which does not count before it arrives', async () => {
    bodies.open((await send()).response)(bodies.total - 10);
    bodies.check(10);
    bodies.check(10);
    expect(() => bodies.check(11)).toThrow(OVERLOADED);
    expect(await bytes()).toBe(bodies.total - 10);
  });

  it('has a metric that an operator can tell apart', async () => {
    bodies.open((await send()).response)(7);
    expect(await registry.metrics()).toBe(
      [
        '# HELP plant_store_pending_body_bytes Bytes of the bodies of requests in flight.',
        '# TYPE plant_store_pending_body_bytes gauge',
        'plant_store_pending_body_bytes 7',
        '',
      ].join('\n'),
    );
  });
});
