import { once } from 'node:events';
import { createServer, IncomingMessage, type ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import { importWithGlobalTimers } from '../../test/setup/held-waits.js';
import { closeServers, openServer } from '../../test/setup/open-server.js';
import { chainsSettled } from '../../test/setup/settled.js';

const { startRequestSpan, startTracing } = await importWithGlobalTimers(
  () => import('./tracing.js'),
);

const FLUSH_TIMEOUT_MS = 1000;

describe('the end of tracing', () => {
  afterEach(async () => {
    jest.useRealTimers();
    await closeServers();
  });

  it('waits a second, and no longer, for a collector that does not respond', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
    const collector = createServer();
    const received = once(collector, 'request');
    const endpoint = `http://127.0.0.1:${await openServer(collector)}`;
    const stop = await startTracing(endpoint, pino({ level: 'silent' }));
    startRequestSpan(new IncomingMessage(new Socket()))!.end();
    let hasEnded = false;
    void stop().then(() => (hasEnded = true));
    const [, response] = (await received) as [IncomingMessage, ServerResponse];
    await pass(FLUSH_TIMEOUT_MS - 1);
    expect(hasEnded).toBe(false);
    await pass(1);
    expect(hasEnded).toBe(true);
    // Otherwise the exporter would try again after the test.
    response.end('{}');
    await once(response, 'close');
  });
});

/** Lets time pass, and then the few turns of the event loop in which promises have their effects. */
async function pass(milliseconds: number): Promise<void> {
  jest.advanceTimersByTime(milliseconds);
  await chainsSettled();
}
