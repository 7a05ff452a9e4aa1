import { describe, expect, it } from '@jest/globals';
import { Expose } from 'class-transformer';
import { IsArray, IsObject, ValidateBy } from 'class-validator';
import { bodyInvalid } from '../errors/errors.js';
import type { JsonValue } from './exact-json.js';
import { JsonBody } from './json-body.js';
import { validate } from './validate.js';

/** A rule for text, or for text of a length. */
const rule = (name: string, isValid: (value: unknown) => boolean) =>
  ValidateBy({ name, validator: { validate: isValid, defaultMessage: () => `$property ${name}` } });

const isText = rule('must be text', (value) => typeof value === 'string');
const isShort = rule('must be short', (value) => String(value).length < 3);

class Thing {
  @isText
  name: string;

  @isShort
  tag?: string;
}

const invalid = (reason: string) =>
  expect.objectContaining({
    code: bodyInvalid.code,
    message: `The body is not a Thing: ${reason}.`,
  });

describe('validate', () => {
  it('gives an instance of the DTO with its fields', () => {
    const thing = validate({ name: 'a', tag: 'b' }, Thing);
    expect(thing).toBeInstanceOf(Thing);
    expect(thing).toEqual({ name: 'a', tag: 'b' });
  });

  it('ignores fields that are not those of the DTO', () => {
    expect(Object.keys(validate({ name: 'a', other: 1n, tag: 'b' }, Thing))).toEqual([
      'name',
      'tag',
    ]);
  });

  it('takes fields by their names, whatever decorators of class-transformer say', () => {
    class Renamed {
      @isText
      @Expose({ name: 'label' })
      name: string;
    }
    expect(validate({ name: 'a', label: 'b' }, Renamed)).toEqual({ name: 'a' });
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

  it('looks into no object or array that a client sends', () => {
    const fail = () => {
      throw new Error('It was looked into');
    };
    const closed = { get: fail, has: fail, ownKeys: fail, getOwnPropertyDescriptor: fail };
    const object = new Proxy({}, closed) as JsonValue;
    const array = new Proxy([], closed) as JsonValue;
    expect(() => validate({ name: object, tag: object, other: object }, Thing)).toThrow(
      invalid('name must be text; tag must be short'),
    );
    expect(() => validate({ name: array, tag: 'b' }, Thing)).toThrow(invalid('name must be text'));
  });

  it.each<[string, JsonValue]>([
    ['constructor', 1],
    ['constructor', { prototype: null }],
    ['__proto__', { constructor: 1 }],
    ['then', 1],
    ['toJSON', { then: 1 }],
    ['length', -1],
  ])('refuses a field with the field "%s": %j, at any depth', (name, member) => {
    const trap = { [name]: member };
    for (const value of [trap, { a: trap }, [trap], { a: [{ b: trap }] }]) {
      expect(() => validate({ name: value, tag: 'b' }, Thing)).toThrow(
        invalid('name must be text'),
      );
    }
  });

  it.each([
    ['an object', { rule: IsObject() }],
    ['an array', { rule: IsArray() }],
  ])('is refused for a DTO with %s, whose contents would be lost', (_kind, { rule: isNested }) => {
    class Nested {
      @isText
      name: string;

      @isNested
      parts: object;
    }
    expect(() => JsonBody(Nested)).toThrow(/^Nested\.parts must be a string/);
  });

  it('names a field once, whichever rules it breaks', () => {
    class Strict {
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
