import { expect, it } from '@jest/globals';
import { HttpException } from '@nestjs/common';
import { toServiceError } from './error.filter.js';

/** An error as the package http-errors makes it, which Express uses. */
const errorOfExpress = (properties: object) => Object.assign(new Error('secret'), properties);

// No route of the service makes Express or Nest throw these today.
it.each([
  ['a Nest exception with 400', new HttpException('secret', 400)],
  ['an error of Express with 499', errorOfExpress({ expose: true, status: 499 })],
])('%s becomes 40000, without its message', (_kind, thrown) => {
  expect(toServiceError(thrown)).toMatchObject({
    code: 40000,
    message: 'The request could not be understood.',
  });
});

it.each([
  ['a Nest exception with 500', new HttpException('secret', 500)],
  ['an error of Express with 500', errorOfExpress({ expose: true, status: 500 })],
  ['an error of Express that hides itself', errorOfExpress({ expose: false, status: 400 })],
  ['an error of an HTTP client', errorOfExpress({ status: 400 })],
  ['an object that is no error', { expose: true, status: 400 }],
  ['undefined', undefined],
])('%s becomes 50000, without its message', (_kind, thrown) => {
  const { code, message } = toServiceError(thrown);
  expect(code).toBe(50000);
  expect(message).not.toContain('secret');
});
