import { Reflector } from '@nestjs/core';

/** Opens a route to the token in METRICS_TOKEN_SHA256, in addition to all others. */
export const ForMetricsToken = Reflector.createDecorator<void, true>({ transform: () => true });
