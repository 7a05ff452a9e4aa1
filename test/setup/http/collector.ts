import { createServer, type Server } from 'node:http';
import { json } from 'node:stream/consumers';
import { startServer } from './open-server.js';

interface OtlpSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  /** Of the Unix clock, in nanoseconds. */
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code: number };
  readonly attributes: readonly { readonly key: string; readonly value: unknown }[];
}

/** A collector's view of a service: its spans, and the attributes that it gives itself. */
interface OtlpResource {
  readonly resource: { readonly attributes: unknown[] };
  readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
}

/** An OpenTelemetry collector that keeps what it receives at the path for traces, and emits `spans` then. */
export interface Collector {
  readonly url: string;
  readonly spans: readonly OtlpSpan[];
  readonly attributes: readonly unknown[];
  readonly server: Server;
  close(): Promise<void>;
}

export async function startCollector(): Promise<Collector> {
  const spans: OtlpSpan[] = [];
  const attributes: unknown[] = [];
  const server = createServer((request, response) => {
    if (request.url !== '/v1/traces') {
      response.writeHead(404).end();
      return;
    }
    void json(request).then((body) => {
      const { resourceSpans } = body as { resourceSpans: OtlpResource[] };
      for (const { resource, scopeSpans } of resourceSpans) {
        attributes.push(...resource.attributes);
        spans.push(...scopeSpans.flatMap((scope) => scope.spans));
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      server.emit('spans');
    });
  });
  const { url, close } = await startServer(server);
  return { url, spans, attributes, server, close };
}
