import { Reflector } from '@nestjs/core';

/** Opens a route, or all routes of a controller, to everybody. Every other route needs a token. */
export const Public = Reflector.createDecorator<void, true>({ transform: () => true });
