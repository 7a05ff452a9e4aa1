import { context, propagation } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import { version } from '../config/version.js';

const LOG_INTERVAL_MS = 60_000;

/** Sets up the OpenTelemetry SDK, and sends spans to the collector at `endpoint`. */
export function createTracerProvider(endpoint: string, logger: Logger): TracerProvider {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  let loggedAt = -Infinity;
  setGlobalErrorHandler((err) => {
    // Under load, spans are sent many times a second.
    if (performance.now() - loggedAt < LOG_INTERVAL_MS) return;
    loggedAt = performance.now();
    logger.warn({ err }, `Traces are lost: they cannot be sent to ${endpoint}.`);
  });
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces` });
  return new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'plant-store', 'service.version': version }),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
}
