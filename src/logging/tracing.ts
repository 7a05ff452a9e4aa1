import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { IncomingMessage } from 'node:http';
import {
  defaultTextMapGetter,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Span,
  type TextMapPropagator,
  type Tracer,
} from '@opentelemetry/api';

/** Where spans go, once `startTracing` was called; until then tracing costs one comparison. */
let tracing: { readonly tracer: Tracer; readonly propagator: TextMapPropagator } | undefined;

const FLUSH_TIMEOUT_MS = 1000;

const currentSpan = new AsyncLocalStorage<Span>();

/**
 * Sends traces to an OpenTelemetry collector.
 *
 * @param endpoint as `OTEL_EXPORTER_OTLP_ENDPOINT` has it, for OTLP over HTTP
 * @returns sends what is left, and stops
 */
export async function startTracing(endpoint: string): Promise<() => Promise<void>> {
  // Loaded only here: without an endpoint, nobody pays for the SDK.
  const [sdk, { OTLPTraceExporter }, { resourceFromAttributes }, { W3CTraceContextPropagator }] =
    await Promise.all([
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
      import('@opentelemetry/core'),
    ]);
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'plant-store' }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
  });
  tracing = {
    tracer: provider.getTracer('plant-store'),
    propagator: new W3CTraceContextPropagator(),
  };
  return async () => {
    tracing = undefined;
    // A collector that is away must not keep the service from stopping.
    const flushed = provider.shutdown().catch(() => undefined);
    await Promise.race([flushed, delay(FLUSH_TIMEOUT_MS, undefined, { ref: false })]);
  };
}

/** A span for a request that was received, or undefined if tracing is off. */
export function startRequestSpan(request: IncomingMessage): Span | undefined {
  if (tracing === undefined) return undefined;
  // The caller's trace goes on here, if it sent one (W3C Trace Context).
  const parent = tracing.propagator.extract(ROOT_CONTEXT, request.headers, defaultTextMapGetter);
  return tracing.tracer.startSpan(request.method ?? 'HTTP', { kind: SpanKind.SERVER }, parent);
}

/** Runs what belongs to a request, so that `inSpan` finds it. */
export function withRequestSpan(span: Span | undefined, work: () => void): void {
  if (span === undefined) work();
  else currentSpan.run(span, work);
}

/** Runs `work` in a span of its own below the request's. If it returns a promise, the span ends with that. */
export function inSpan<Result>(name: string, attributes: Attributes, work: () => Result): Result {
  const parent = tracing === undefined ? undefined : currentSpan.getStore();
  if (tracing === undefined || parent === undefined) return work();
  const span = tracing.tracer.startSpan(
    name,
    { kind: SpanKind.CLIENT, attributes },
    trace.setSpan(ROOT_CONTEXT, parent),
  );
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
}
