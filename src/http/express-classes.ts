import { IncomingMessage, ServerResponse, type ServerOptions } from 'node:http';
import type { Application } from 'express';

/** What Express gives every request and response as its prototype; its types leave it out. */
interface ExpressPrototypes {
  request: object;
  response: object;
}

/**
 * Classes whose objects are born with the prototypes that Express wants. It would change the prototype of every request
 * and response instead, after which V8 treats them as slow objects.
 */
export function classesOf(
  app: Application,
): Pick<ServerOptions, 'IncomingMessage' | 'ServerResponse'> {
  const prototypes = app as unknown as ExpressPrototypes;
  class ExpressRequest extends IncomingMessage {}
  class ExpressResponse<Of extends IncomingMessage> extends ServerResponse<Of> {}
  prototypes.request = Object.setPrototypeOf(
    ExpressRequest.prototype,
    prototypes.request,
  ) as object;
  prototypes.response = Object.setPrototypeOf(
    ExpressResponse.prototype,
    prototypes.response,
  ) as object;
  return { IncomingMessage: ExpressRequest, ServerResponse: ExpressResponse };
}
