// Requests and responses that have Express's methods from the start.

import { IncomingMessage, ServerResponse, type ServerOptions } from 'node:http';
import type { Application } from 'express';

/**
 * Classes whose instances already have the prototypes that Express gives to requests and responses. Otherwise Express changes
 * the prototype of every request and response, and V8 treats them as slow objects from then on: 4 to 8 % of a request's
 * processor time.
 */
export function expressPrototypes(
  app: Application,
): Pick<ServerOptions, 'IncomingMessage' | 'ServerResponse'> {
  // Express's types lack these properties.
  const prototypes = app as unknown as { request: object; response: object };
  class ExpressRequest extends IncomingMessage {}
  class ExpressResponse<Of extends IncomingMessage> extends ServerResponse<Of> {}
  Object.setPrototypeOf(ExpressRequest.prototype, prototypes.request);
  Object.setPrototypeOf(ExpressResponse.prototype, prototypes.response);
  prototypes.request = ExpressRequest.prototype;
  prototypes.response = ExpressResponse.prototype;
  return { IncomingMessage: ExpressRequest, ServerResponse: ExpressResponse };
}
