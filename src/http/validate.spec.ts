import { expect, it } from '@jest/globals';
import { IsArray, IsObject, IsString } from 'class-validator';
import type { JsonValue } from './exact-json.js';
import { JsonBody } from './json-body.js';
import { validate } from './validate.js';

it.each([
  ['an object', IsObject()],
  ['an array', IsArray()],
])('a DTO with %s is a fault, because its contents would be lost', (_kind, isNested) => {
  class Nested {
    @isNested
    parts: object;
  }
  expect(() => JsonBody(Nested)).toThrow(/^Nested\.parts must be a string/);
});

it('no object or array that a client sends is looked into', () => {
  class Thing {
    @IsString()
    name: string;
  }
  const fail = () => {
    throw new Error('It was looked into');
  };
  const closed = { get: fail, has: fail, ownKeys: fail, getOwnPropertyDescriptor: fail };
  for (const target of [{}, []]) {
    const value = new Proxy(target, closed) as JsonValue;
    expect(() => validate({ name: value }, Thing)).toThrow(
      'The body is not a Thing: name must be a string.',
    );
    expect(validate({ name: 'a', other: value }, Thing)).toEqual({ name: 'a' });
  }
});
