import { SetMetadata, type CustomDecorator } from '@nestjs/common';

export const IS_FOR_METRICS_TOKEN = 'isForMetricsToken';

/** Opens a route to the token in METRICS_TOKEN_SHA256, beside all others. */
export const ForMetricsToken = (): CustomDecorator => SetMetadata(IS_FOR_METRICS_TOKEN, true);
