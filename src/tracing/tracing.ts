import { setTimeout as delay } from 'node:timers/promises';
import type { IncomingMessage } from 'node:http';
import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Span,
  type Tracer,
} from '@opentelemetry/api';

/** Set by `startTracing`; until then tracing costs one comparison. */
let tracer: Tracer | undefined;

const FLUSH_TIMEOUT_MS = 1000;

/**
 * Sends traces to an OpenTelemetry collector.
 *
 * @param endpoint as `OTEL_EXPORTER_OTLP_ENDPOINT` has it, for OTLP over HTTP
 * @returns sends what is left, and stops
 */
export async function startTracing(endpoint: string): Promise<() => Promise<void>> {
  // Loaded only here: a service without an endpoint does not pay for the SDK.
  const [
    sdk,
    { OTLPTraceExporter },
    { resourceFromAttributes },
    { W3CTraceContextPropagator },
    { AsyncLocalStorageContextManager },
  ] = await Promise.all([
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/core'),
    import('@opentelemetry/context-async-hooks'),
  ]);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'plant-store' }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
  });
  tracer = provider.getTracer('plant-store');
  return async () => {
    tracer = undefined;
    // A collector that is away must not keep the service from stopping.
    const flushed = provider.shutdown().catch(() => undefined);
    await Promise.race([flushed, delay(FLUSH_TIMEOUT_MS, undefined, { ref: false })]);
  };
}

/** A span for a request that was received, or undefined if tracing is off. */
export function startRequestSpan(request: IncomingMessage): Span | undefined {
  if (tracer === undefined) return undefined;
  // The trace of the client goes on here, if it sent one (W3C Trace Context).
  const parent = propagation.extract(ROOT_CONTEXT, request.headers);
  return tracer.startSpan(request.method ?? 'HTTP', { kind: SpanKind.SERVER }, parent);
}

/** Runs the handling of a request, so that `inSpan` finds its span. */
export function withRequestSpan(span: Span | undefined, work: () => void): void {
  if (span === undefined) work();
  else context.with(trace.setSpan(ROOT_CONTEXT, span), work);
}

/** Runs `work` in a span below the request's. If it returns a promise, the span ends with that. */
export function inSpan<Result>(name: string, attributes: Attributes, work: () => Result): Result {
  if (tracer === undefined || trace.getActiveSpan() === undefined) return work();
  return tracer.startActiveSpan(name, { kind: SpanKind.CLIENT, attributes }, (span) => {
    const fail = (error: unknown): never => {
      span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
      throw error;
    };
    try {
      const result = work();
      if (result instanceof Promise) {
        return result.then((value: unknown) => {
          span.end();
          return value;
        }, fail) as Result;
      }
      span.end();
      return result;
    } catch (error) {
      return fail(error);
    }
  });
}
