import { once } from 'node:events';
import { createServer, IncomingMessage, type ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { globalErrorHandler } from '@opentelemetry/core';
import { pino } from 'pino';
import { holdTime } from '../../test/setup/time/held-timers.js';
import { startCollector, type Collector } from '../../test/setup/http/collector.js';
import { importWithWaits } from '../../test/setup/time/held-waits.js';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { chainsSettled, untilSettled } from '../../test/setup/time/settled.js';

const resources = useResources();

const { inSpan, startRequestSpan, startTracing, withRequestSpan } = await importWithWaits(
  () => import('./tracing.js'),
);

const FLUSH_TIMEOUT_MS = 1000;
const LOG_INTERVAL_MS = 60_000;
/** Without waiting for more. */
const SPANS_SENT_AT_ONCE = 512;
const [UNSET, FAILED] = [0, 2];

const startSpan = () => startRequestSpan(new IncomingMessage(new Socket()))!;

beforeEach(() => {
  holdTime();
});
afterEach(() => void jest.useRealTimers());

describe('the span of work on a request', () => {
  const error = new Error('no');
  let collector: Collector;
  let stop: () => Promise<void>;

  beforeEach(async () => {
    collector = await startCollector();
    stop = await startTracing(collector.url, pino({ level: 'silent' }));
  });
  afterEach(() => collector.close());

  it('lasts until the promise of the work settles', async () => {
    const work = Promise.withResolvers<void>();
    withRequestSpan(startSpan(), () => void inSpan('work', {}, () => work.promise));
    await pass(30);
    work.resolve();
    await chainsSettled();
    await stop();
    const [span] = collector.spans;
    expect(span).toMatchObject({ name: 'work', status: { code: UNSET } });
    const lifetime = BigInt(span!.endTimeUnixNano) - BigInt(span!.startTimeUnixNano);
    expect(lifetime).toBe(30_000_000n);
  });

  it.each([
    [
      'the work throws',
      () => {
        throw error;
      },
    ],
    ['the promise of the work rejects', () => Promise.reject(error)],
  ])('has failed when %s', async (_failure, work: () => unknown) => {
    let outcome: unknown;
    withRequestSpan(startSpan(), () => {
      outcome = new Promise((resolve) => resolve(inSpan('work', {}, work)));
    });
    await expect(outcome).rejects.toBe(error);
    await stop();
    expect(collector.spans).toMatchObject([{ name: 'work', status: { code: FAILED } }]);
  });
});

describe('lost spans', () => {
  it('are logged with the collector that refused them, at most once a minute', async () => {
    const entries: string[] = [];
    const logger = pino({}, { write: (entry) => void entries.push(entry) });
    const refusing = createServer((_request, response) => response.writeHead(404).end());
    const { url } = await openServer(resources, refusing);
    const stop = await startTracing(url, logger);
    for (let i = 0; i < SPANS_SENT_AT_ONCE; i++) startSpan().end();
    await untilSettled(() => entries.length > 0);
    expect(entries).toEqual([expect.stringContaining(`they cannot be sent to ${url}.`)]);
    // The SDK calls this handler when it cannot send spans.
    const lose = () => globalErrorHandler(new Error('no'));
    jest.advanceTimersByTime(LOG_INTERVAL_MS - 1);
    lose();
    expect(entries).toHaveLength(1);
    jest.advanceTimersByTime(1);
    lose();
    expect(entries).toHaveLength(2);
    startSpan().end();
    // A collector that accepts nothing does not keep the service from stopping.
    await stop();
  });
});

describe('the end of tracing', () => {
  it('waits a second, and no longer, for a collector that does not respond', async () => {
    const collector = createServer();
    const received = once(collector, 'request');
    const endpoint = `${(await openServer(resources, collector)).url}/collector`;
    const stop = await startTracing(endpoint, pino({ level: 'silent' }));
    startSpan().end();
    let hasEnded = false;
    void stop().then(() => (hasEnded = true));
    const [request, response] = (await received) as [IncomingMessage, ServerResponse];
    expect(request.url).toBe('/collector/v1/traces');
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
