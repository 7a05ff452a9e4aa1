import { describe, expect, it } from '@jest/globals';
import { HttpException, type ArgumentsHost } from '@nestjs/common';
import { requestBytes, startReceiver } from '../../test/setup/http/receiver.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { ErrorCode } from './error-codes.js';
import { ErrorFilter, toServiceError } from './error.filter.js';
import { sentError } from './send-error.js';
import { overloaded } from './service-error.js';

/** An error as the package http-errors makes it, which Express uses. */
const errorOfExpress = (properties: object) => Object.assign(new Error('secret'), properties);

const resources = useResources();

it('an error that is thrown becomes the response', async () => {
  const receiver = await startReceiver();
  resources.defer(() => receiver.close());
  const { request, response } = await receiver.send(requestBytes([]));
  const error = overloaded();
  new ErrorFilter().catch(error, {
    switchToHttp: () => ({ getRequest: () => request, getResponse: () => response }),
  } as ArgumentsHost);
  expect(sentError(response)).toBe(error);
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
    expect(code).toBe(ErrorCode.badRequest);
    expect(message).toBe('The request could not be understood.');
  });

  it.each(['EMFILE', 'ENFILE'])('is 50301 for %s, of a file that cannot be opened now', (code) => {
    const thrown = errorOfExpress({ expose: false, status: 500, code });
    expect(toServiceError(thrown).code).toBe(ErrorCode.overloaded);
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
    ['a missing file', errorOfExpress({ expose: true, status: 404, syscall: 'stat' })],
    [
      'a missing file, as Nest reports it',
      new HttpException('secret', 404, { cause: errorOfExpress({ syscall: 'stat' }) }),
    ],
    ['an error with nothing', new Error('secret')],
    ['an object that is no error', { expose: true, status: 400 }],
    ['undefined', undefined],
  ])('is 50000 for %s, without its message', (_kind, thrown) => {
    const { code, message } = toServiceError(thrown);
    expect(code).toBe(ErrorCode.internal);
    expect(message).not.toContain('secret');
  });
});
