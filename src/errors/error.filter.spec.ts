import { describe, expect, it } from '@jest/globals';
import { HttpException } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import type { Response } from 'express';
import { requestBytes, startReceiver } from '../../test/setup/http/receiver.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { badRequest, internal, overloaded } from './errors.js';
import { ConnectionClosed } from './service-error.js';
import { ErrorFilter, toServiceError } from './error.filter.js';
import { sentError } from './send-error.js';

/** An error as the package http-errors makes it, which Express uses. */
const errorOfExpress = (properties: object) => Object.assign(new Error('secret'), properties);

const resources = useResources();

/** @returns the response to a request whose route threw this */
async function responseTo(thrown: unknown): Promise<Response> {
  const receiver = await startReceiver();
  resources.defer(() => receiver.close());
  const { request, response } = await receiver.send(requestBytes([]));
  new ErrorFilter().catch(thrown, new ExecutionContextHost([request, response]));
  return response;
}

it('an error that is thrown becomes the response', async () => {
  const error = overloaded();
  expect(sentError(await responseTo(error))).toBe(error);
});

it('a client that has given up gets no response', async () => {
  const response = await responseTo(new ConnectionClosed());
  expect(sentError(response)).toBeUndefined();
  expect(response.headersSent).toBe(false);
});

describe('the error that a client gets for anything that was thrown', () => {
  it('is the same one, if the service made it', () => {
    const error = overloaded();
    expect(toServiceError(error)).toBe(error);
  });

  it.each([
    ['a Nest exception with 400', new HttpException('secret', 400)],
    ['a Nest exception with 499', new HttpException('secret', 499)],
    ['an error of Express with 400', errorOfExpress({ expose: true, status: 400 })],
    ['an error of Express with 499', errorOfExpress({ expose: true, status: 499 })],
  ])('is 40000 for %s, without its message', (_kind, thrown) => {
    const { code, message } = toServiceError(thrown);
    expect(code).toBe(badRequest.code);
    expect(message).toBe('The request could not be understood.');
  });

  it.each([
    ['a Nest exception with 399', new HttpException('secret', 399)],
    ['a Nest exception with 500', new HttpException('secret', 500)],
    ['an error of Express with 500', errorOfExpress({ expose: true, status: 500 })],
    ['an error of Express that hides itself', errorOfExpress({ expose: false, status: 400 })],
    [
      'an error of Express with a text as its status',
      errorOfExpress({ expose: true, status: '400' }),
    ],
    ['an error of an HTTP client', errorOfExpress({ status: 400 })],
    ['an error with nothing', new Error('secret')],
    ['an object that is no error', { expose: true, status: 400 }],
    ['undefined', undefined],
  ])('is 50000 for %s, without its message', (_kind, thrown) => {
    const { code, message } = toServiceError(thrown);
    expect(code).toBe(internal.code);
    expect(message).not.toContain('secret');
  });
});
