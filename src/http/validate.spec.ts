import { describe, expect, it } from '@jest/globals';
import { ValidateBy } from 'class-validator';
import { ErrorCode } from '../errors/error-codes.js';
import type { JsonValue } from './exact-json.js';
import { JsonMember } from './json-member.js';
import { validate } from './validate.js';

/** A rule for text, or for text of a length. */
const rule = (name: string, isValid: (value: unknown) => boolean) =>
  ValidateBy({ name, validator: { validate: isValid, defaultMessage: () => `$property ${name}` } });

const isText = rule('must be text', (value) => typeof value === 'string');
const isShort = rule('must be short', (value) => String(value).length < 3);

class Thing {
  @JsonMember()
  @isText
  name: string;

  @JsonMember()
  @isShort
  tag?: string;
}

const invalid = (reason: string) =>
  expect.objectContaining({
    code: ErrorCode.bodyInvalid,
    message: `The body is not a Thing: ${reason}.`,
  });

describe('validate', () => {
  it('gives an instance of the DTO with its members', () => {
    const thing = validate({ name: 'a', tag: 'b' }, Thing);
    expect(thing).toBeInstanceOf(Thing);
    expect(thing).toEqual({ name: 'a', tag: 'b' });
  });

  it('ignores members that are no fields of the DTO', () => {
    expect(Object.keys(validate({ name: 'a', other: 1n, tag: 'b' }, Thing))).toEqual([
      'name',
      'tag',
    ]);
  });

  it.each<[string, JsonValue]>([
    ['null', null],
    ['an array', [{ name: 'a' }]],
    ['a string', 'a'],
    ['a number', 1],
    ['an integer', 1n],
    ['true', true],
  ])('refuses %s, which is no object', (_kind, value) => {
    expect(() => validate(value, Thing)).toThrow(invalid('it must be a JSON object'));
  });

  it('names every field that breaks a rule', () => {
    expect(() => validate({ name: 1, tag: 'long' }, Thing)).toThrow(
      invalid('name must be text; tag must be short'),
    );
  });

  it('names a field once, whichever rules it breaks', () => {
    class Strict {
      @JsonMember()
      @isText
      @isShort
      name: string;
    }
    let message = '';
    try {
      validate({ name: 1234 }, Strict);
    } catch (error) {
      ({ message } = error as Error);
    }
    expect(message.match(/name/g)).toHaveLength(1);
  });
});
