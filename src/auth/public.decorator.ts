import { SetMetadata, type CustomDecorator } from '@nestjs/common';

export const IS_PUBLIC = 'isPublic';
export const IS_METRICS = 'isMetrics';

/** Opens a route to the token in METRICS_TOKEN_SHA256, beside all others. */
export const ForMetricsToken = (): CustomDecorator => SetMetadata(IS_METRICS, true);

/** Opens a route, or all routes of a controller, to everybody. Every other route asks for a token. */
export const Public = (): CustomDecorator => SetMetadata(IS_PUBLIC, true);
