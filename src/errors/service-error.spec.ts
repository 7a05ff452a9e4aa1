import { expect, it } from '@jest/globals';
import { ErrorCode } from './error-codes.js';
import {
  internal,
  invalidHttp,
  issuerMisconfigured,
  issuerUnavailable,
  overloaded,
  shuttingDown,
  tokenInvalid,
  tokenMissing,
  tooManyAttempts,
} from './service-error.js';

const AGAIN = 'Send the request again in a moment.';

it.each([
  [() => invalidHttp(), ErrorCode.badRequest, 'The request is not valid HTTP.'],
  [
    () => tokenMissing(),
    ErrorCode.tokenMissing,
    'A bearer token is needed: send the header Authorization: Bearer <token>.',
  ],
  [
    () => tokenInvalid(),
    ErrorCode.tokenInvalid,
    'The bearer token is not valid, or no longer valid.',
  ],
  [
    () => tooManyAttempts(7),
    ErrorCode.tooManyAttempts,
    'Too many tokens from your address were not valid. Send the request again in 7 seconds.',
  ],
  [
    () => internal(),
    ErrorCode.internal,
    'The service failed to handle this request. The fault is ours; trying again later is safe.',
  ],
  [
    () => issuerUnavailable(),
    ErrorCode.issuerUnavailable,
    `The token cannot be checked now, because the identity provider does not respond. ${AGAIN}`,
  ],
  [
    () => issuerMisconfigured('why'),
    ErrorCode.issuerUnavailable,
    'The token cannot be checked, because the service and its identity provider are not set up for each other. Inform the operator of the service.',
  ],
  [
    () => overloaded(),
    ErrorCode.overloaded,
    `The service has more work waiting than it accepts. ${AGAIN}`,
  ],
  [
    () => shuttingDown(),
    ErrorCode.shuttingDown,
    'This instance of the service is shutting down. Send the request again on a new connection.',
  ],
])('%s gives a client a number, and a sentence that says what to do', (make, code, message) => {
  expect(make()).toMatchObject({ name: 'ServiceError', code, message });
});

it('a client that sent too many tokens learns when to send the next one', () => {
  expect(tooManyAttempts(7).headers).toEqual({ 'Retry-After': '7' });
});
