import { describe, expect, it } from '@jest/globals';
import { bodyInvalid } from '../../errors/errors.js';
import type { JsonValue } from '../../http/exact-json.js';
import { validate } from '../../http/validate.js';
import { NewPlant } from './plant.js';

const PLANT = { id: 1n, name: 'a', tag: 'b' };

const refusal = (reason: string) =>
  expect.objectContaining({
    code: bodyInvalid.code,
    message: `The body is not a NewPlant: ${reason}.`,
  });

const refusalOf = (members: { [name: string]: JsonValue }): unknown => {
  try {
    return validate(members, NewPlant);
  } catch (error) {
    return error;
  }
};

const INT64 = 'id must be an integer from -9223372036854775808 to 9223372036854775807';

describe('a new plant', () => {
  it.each<[string, { [name: string]: JsonValue }]>([
    ['with a tag', PLANT],
    ['without a tag', { id: 1n, name: 'a' }],
    ['with empty texts', { id: -1n, name: '', tag: '' }],
    ['with characters outside the basic plane', { id: 1n, name: '🌱', tag: '𝄞' }],
  ])('is accepted %s', (_kind, members) => {
    expect({ ...validate(members, NewPlant) }).toEqual(members);
  });

  it('has its own fields only', () => {
    expect({ ...validate({ ...PLANT, height: 3n }, NewPlant) }).toEqual(PLANT);
  });

  it.each<[string, JsonValue, string]>([
    ['a number that is no int64', 0.5, `${INT64}, which this number is not`],
    ['a string', '5', `${INT64}, not a string`],
    ['a boolean', true, `${INT64}, not a boolean`],
    ['null', null, `${INT64}, not null`],
    ['an array', [1n], `${INT64}, not an array`],
    ['an object', { value: 1n }, `${INT64}, not an object`],
  ])('is refused if its id is %s', (_kind, id, reason) => {
    expect(refusalOf({ ...PLANT, id })).toEqual(refusal(reason));
  });

  it.each<[string, JsonValue, string]>([
    ['a number', 5n, 'must be a string, not a number'],
    ['a fraction', 0.5, 'must be a string, not a number'],
    ['a boolean', false, 'must be a string, not a boolean'],
    ['null', null, 'must be a string, not null'],
    ['an array', ['a'], 'must be a string, not an array'],
    ['an object', { length: 1n }, 'must be a string, not an object'],
    ['a text with NUL', 'a\0b', 'contains the character U+0000, which cannot be stored'],
    [
      'a text with half a pair',
      'a\ud800',
      'contains half of a surrogate pair, which is not a character',
    ],
    [
      'a text with the halves of a pair in the wrong order',
      '\udc00\ud83c',
      'contains half of a surrogate pair, which is not a character',
    ],
  ])('is refused if its name or its tag is %s', (_kind, value, reason) => {
    expect(refusalOf({ ...PLANT, name: value })).toEqual(refusal(`name ${reason}`));
    expect(refusalOf({ ...PLANT, tag: value })).toEqual(refusal(`tag ${reason}`));
  });

  it('is refused for all of its wrong fields at once', () => {
    expect(refusalOf({ tag: null })).toEqual(
      refusal('id is missing; name is missing; tag must be a string, not null'),
    );
  });
});
