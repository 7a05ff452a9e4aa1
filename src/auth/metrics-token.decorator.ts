import { Reflector } from '@nestjs/core';

/** Lets the metrics token, whose hash is METRICS_TOKEN_SHA256, use this route; other valid tokens may, too. */
export const ForMetricsToken = Reflector.createDecorator<void, true>({ transform: () => true });
