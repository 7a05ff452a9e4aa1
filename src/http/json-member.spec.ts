import { describe, expect, it } from '@jest/globals';
import { plainToInstance } from 'class-transformer';
import { JsonMember } from './json-member.js';

/** Makes a DTO from the JSON `{ name: value }`, and returns its field `name`. */
function fieldFor(value: unknown): unknown {
  class Thing {
    @JsonMember()
    name: string;
  }
  return plainToInstance(Thing, { name: value }).name;
}

describe('a field that takes a member of the JSON', () => {
  it.each([['a'], [1n], [1.5], [true], [null], [undefined]])('gets %p as it is', (value) => {
    expect(fieldFor(value)).toBe(value);
  });

  it('gets an object or an array as it is, not as its declared type', () => {
    expect(fieldFor({ a: 1 })).toEqual({ a: 1 });
    expect(Object.getPrototypeOf(fieldFor({ a: 1 }))).toBe(Object.prototype);
    expect(fieldFor(['a', { b: 1 }])).toEqual(['a', { b: 1 }]);
  });

  it('is not constructed from a member "constructor"', () => {
    const calls: unknown[] = [];
    const field = fieldFor({ constructor: (value: unknown) => calls.push(value), a: 1 });
    expect(Object.getPrototypeOf(field)).toBe(Object.prototype);
    expect(calls).toEqual([]);
  });
});
