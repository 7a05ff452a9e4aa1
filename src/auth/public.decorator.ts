import { SetMetadata, type CustomDecorator } from '@nestjs/common';

export const IS_PUBLIC = 'isPublic';

/** Opens a route, or all routes of a controller, to everybody. Every other route asks for a token. */
export const Public = (): CustomDecorator => SetMetadata(IS_PUBLIC, true);
