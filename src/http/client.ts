// The client of a request, as a handler sees it: `create(@RequestClient() client: Client)`.

import { createParamDecorator, type ExecutionContext } from '@nestjs/common';

export interface Client {
  /** Whether the client has given up, by a reset or by closing its side: nobody reads a response. */
  readonly closed: boolean;
}

export const RequestClient: () => ParameterDecorator = createParamDecorator(
  (_data: unknown, context: ExecutionContext): Client =>
    context.switchToHttp().getResponse<Client>(),
);
