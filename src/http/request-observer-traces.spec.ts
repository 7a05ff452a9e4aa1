import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { requestBytes, startReceiver, type Receiver } from '../../test/http/receiver.js';
import { inSpan, startTracing } from '../tracing/tracing.js';
import { RequestObserver } from './request-observer.js';
import { whenClosed } from './when-closed.js';

/** A span, as a collector receives it. */
interface Span {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly status: { readonly code: number };
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
}

interface Batch {
  readonly resourceSpans: { readonly scopeSpans: { readonly spans: Span[] }[] }[];
}

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CLIENT_SPAN = 'b7ad6b7169203331';
const [SERVER_KIND, UNSET, FAILED] = [2, 0, 2];

describe('the span of a request', () => {
  let receiver: Receiver;
  let collector: Server;

  beforeAll(async () => {
    receiver = await startReceiver();
    collector = createServer((request, response) => {
      void json(request).then((batch) => {
        collector.emit('batch', batch);
        response.end('{}');
      });
    });
    await once(collector.listen(0, '127.0.0.1'), 'listening');
  });
  afterAll(async () => {
    collector.closeAllConnections();
    collector.close();
    await receiver.close();
  });

  /** Handles one request with tracing. @returns its log entry, and the spans that the collector received */
  async function trace(status: number, route?: string) {
    let entry = {};
    const write = (line: string) => void (entry = JSON.parse(line) as object);
    const logger = pino({ base: null, timestamp: false }, { write });
    const { port } = collector.address() as AddressInfo;
    const exported = once(collector, 'batch') as Promise<[Batch]>;
    const stop = await startTracing(`http://127.0.0.1:${port}`, logger);

    const observer = new RequestObserver(logger, new Registry());
    const traceparent = `traceparent: 00-${TRACE}-${CLIENT_SPAN}-01`;
    const { request, response } = await receiver.send(requestBytes([traceparent]));
    if (route !== undefined) Object.assign(request, { route: { path: route } });
    observer.observe(request, response, () => inSpan('work', {}, () => undefined));
    response.statusCode = status;
    response.end();
    await new Promise<void>((resolve) => whenClosed(response, resolve));
    await stop();

    const [batch] = await exported;
    const spans = batch.resourceSpans.flatMap(({ scopeSpans }) =>
      scopeSpans.flatMap((it) => it.spans),
    );
    return { entry, spans };
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
