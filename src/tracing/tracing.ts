import { setTimeout as delay } from 'node:timers/promises';
import type { IncomingMessage } from 'node:http';
import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Span,
  type SpanOptions,
  type Tracer,
} from '@opentelemetry/api';
import type { Logger } from 'pino';

/** Set by `startTracing`; until then tracing costs one comparison. */
let tracer: Tracer | undefined;

const FLUSH_TIMEOUT_MS = 1000;

/**
 * Sends traces to an OpenTelemetry collector.
 *
 * @param endpoint the value of `OTEL_EXPORTER_OTLP_ENDPOINT`, for OTLP over HTTP
 * @param logger gets an entry when spans are lost, at most once a minute
 * @returns a function that sends the remaining traces and stops
 */
export async function startTracing(endpoint: string, logger: Logger): Promise<() => Promise<void>> {
  // The SDK is loaded only here: a service without an endpoint does not need it.
  const { createTracerProvider } = await import('./tracer-provider.js');
  const provider = createTracerProvider(endpoint, logger);
  tracer = provider.getTracer('plant-store');
  return async () => {
    tracer = undefined;
    // A collector that is down must not keep the service from stopping.
    const flushed = provider.shutdown().catch(() => undefined);
    await Promise.race([flushed, delay(FLUSH_TIMEOUT_MS, undefined, { ref: false })]);
  };
}

/** @returns a span for a request that was received, or undefined if tracing is off */
export function startRequestSpan(request: IncomingMessage): Span | undefined {
  if (tracer === undefined) return undefined;
  // Continues the trace of the client, if the request has one (W3C Trace Context).
  const parent = propagation.extract(ROOT_CONTEXT, request.headers);
  return tracer.startSpan(request.method ?? 'HTTP', { kind: SpanKind.SERVER }, parent);
}

/** Runs `work`, which handles a request, so that `inSpan` finds the span of the request. */
export function withRequestSpan(span: Span | undefined, work: () => void): void {
  if (span === undefined) work();
  else context.with(trace.setSpan(ROOT_CONTEXT, span), work);
}

/**
 * Runs `work` in a child of the request's span. If `work` returns a promise, the child ends when that settles.
 *
 * @param options by default, the span is internal: it calls no other program
 */
export function inSpan<Result>(name: string, options: SpanOptions, work: () => Result): Result {
  if (tracer === undefined || trace.getActiveSpan() === undefined) return work();
  return tracer.startActiveSpan(name, options, (span) => {
    const end = () => span.end();
    const fail = () => span.setStatus({ code: SpanStatusCode.ERROR }).end();
    try {
      const result = work();
      if (result instanceof Promise) result.then(end, fail);
      else end();
      return result;
    } catch (error) {
      fail();
      throw error;
    }
  });
}
