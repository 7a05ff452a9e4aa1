import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { expect, it } from '@jest/globals';
import { requestOf, responseOf } from './execution-context.js';

it('the request and the response are those that Nest gives to guards and decorators', () => {
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  const context = new ExecutionContextHost([request, response]);
  expect(requestOf(context)).toBe(context.switchToHttp().getRequest());
  expect(responseOf(context)).toBe(context.switchToHttp().getResponse());
  expect([requestOf(context), responseOf(context)]).toEqual([request, response]);
});
