import { expect, it } from '@jest/globals';
import { ErrorCode } from '../errors/error-codes.js';
import { invalidHttp, ServiceError } from '../errors/service-error.js';
import { errorOf, errorResponse } from './error-response.js';

it('a second example of one error number is refused, because it would replace the first', () => {
  const invalidId = new ServiceError(ErrorCode.badRequest, 'The id is not an integer.');
  expect(() => errorResponse(400, 'The request failed', {}, [invalidHttp(), invalidId])).toThrow(
    'Two examples of the response "The request failed" have the same error number.',
  );
});

it('an example is the error that a check throws', () => {
  const error = invalidHttp();
  const check = (thrown?: Error) => () => {
    if (thrown !== undefined) throw thrown;
  };
  expect(errorOf(check(error))).toBe(error);
  expect(() => errorOf(check(new TypeError('a fault')))).toThrow('a fault');
  expect(() => errorOf(check())).toThrow('accepts what it should refuse');
});
