import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { requestBytes, startReceiver, type Receiver } from '../../test/setup/http/receiver.js';
import { startCollector, type Collector } from '../../test/setup/http/collector.js';
import { inSpan, startTracing } from '../tracing/tracing.js';
import { RequestObserver } from './request-observer.js';
import { whenClosed } from './when-closed.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CLIENT_SPAN = 'b7ad6b7169203331';
const [SERVER_KIND, UNSET, FAILED] = [2, 0, 2];

describe('the span of a request', () => {
  let receiver: Receiver;
  let collector: Collector;

  beforeEach(async () => {
    receiver = await startReceiver();
    collector = await startCollector();
  });
  afterEach(async () => {
    await collector.close();
    await receiver.close();
  });

  /** Handles one request with tracing. @returns its log entry, and the spans that the collector received */
  async function trace(status: number, route?: string) {
    let entry = {};
    const write = (line: string) => void (entry = JSON.parse(line) as object);
    const logger = pino({ base: null, timestamp: false }, { write });
    const stop = await startTracing(collector.url, logger);

    const observer = new RequestObserver(logger, new Registry());
    const traceparent = `traceparent: 00-${TRACE}-${CLIENT_SPAN}-01`;
    const { request, response } = await receiver.send(requestBytes([traceparent]));
    if (route !== undefined) Object.assign(request, { route: { path: route } });
    observer.observe(request, response, () => inSpan('work', {}, () => undefined));
    response.statusCode = status;
    response.end();
    await new Promise<void>((resolve) => whenClosed(response, resolve));
    await stop();
    return { entry, spans: collector.spans };
  }

  it('belongs to the trace of the client, and says what the log entry says', async () => {
    const { entry, spans } = await trace(200, '/plants');
    expect(entry).toMatchObject({ traceId: TRACE });
    expect(spans).toContainEqual(
      expect.objectContaining({
        name: 'POST /plants',
        kind: SERVER_KIND,
        traceId: TRACE,
        parentSpanId: CLIENT_SPAN,
        status: { code: UNSET },
        attributes: [
          { key: 'http.request.method', value: { stringValue: 'POST' } },
          { key: 'http.route', value: { stringValue: '/plants' } },
          { key: 'http.response.status_code', value: { intValue: 200 } },
        ],
      }),
    );
  });

  it('is the parent of the spans of the work on the request', async () => {
    const { spans } = await trace(200, '/plants');
    const parent = spans.find(({ name }) => name === 'POST /plants');
    const work = spans.find(({ name }) => name === 'work');
    expect(work).toMatchObject({ traceId: TRACE, parentSpanId: parent!.spanId });
  });

  it.each([
    [499, 'has not failed', UNSET],
    [500, 'has failed', FAILED],
    [503, 'has failed', FAILED],
  ])('with the status %d %s', async (status, _outcome, code) => {
    const { spans } = await trace(status);
    const span = spans.find(({ name }) => name === 'POST unmatched');
    expect(span).toMatchObject({ status: { code } });
  });
});
