import { describe, expect, it } from '@jest/globals';
import { JsonError, MAX_DEPTH, parseExactJson } from './exact-json.js';

describe('parseExactJson', () => {
  it.each<[string, bigint]>([
    ['0', 0n],
    ['-0', 0n],
    ['0.000e999999999999', 0n],
    ['5.0', 5n],
    ['1e2', 100n],
    ['1E+2', 100n],
    ['12.5e1', 125n],
    ['5000e-3', 5n],
    ['-120.0e-1', -12n],
    ['9007199254740993', 9007199254740993n],
    ['9223372036854775807', 9223372036854775807n],
    ['-9223372036854775808', -9223372036854775808n],
    ['9223372036854775807.000', 9223372036854775807n],
    ['9.223372036854775807e18', 9223372036854775807n],
    ['922337203685477580700e-2', 9223372036854775807n],
    ['0.00009223372036854775807e23', 9223372036854775807n],
    ['1e18', 1000000000000000000n],
  ])('reads %s as the integer %s', (text, value) => {
    expect(parseExactJson(text)).toBe(value);
  });

  it.each([
    '1.0000000000000000000001',
    '9007199254740993.5',
    '0.1',
    '1e-1',
    '9223372036854775808',
    '-9223372036854775809',
    '9223372036854775807.1',
    '1e19',
    '1e400',
    '1e999999999999',
    '1e-999999999999',
  ])('does not take %s for an int64', (text) => {
    expect(typeof parseExactJson(text)).toBe('number');
  });

  it('reads a long run of zeros in time that grows with its length only', () => {
    const zeros = '0'.repeat(1_000_000);
    expect(typeof parseExactJson(`1.${zeros}1`)).toBe('number');
    expect(parseExactJson(`1.${zeros}`)).toBe(1n);
  });

  it('reads every kind of value', () => {
    expect(parseExactJson(' {"a": [1, "x", true, false, null, 1.5, {}], "b": ""} ')).toEqual({
      a: [1n, 'x', true, false, null, 1.5, {}],
      b: '',
    });
  });

  it.each([
    ['{"a":1,"a":1}', '"a"'],
    ['{"a":1,"b":{"c":1,"c":2}}', '"c"'],
    ['[{"a":1,"\\u0061":2}]', '"a"'],
    ['{"":1,"" :2}', '""'],
    ['{"__proto__":1,"__proto__":2}', '"__proto__"'],
    ['{"a\\"b":1,"a\\"b":2}', '"a\\"b"'],
  ])('refuses the repeated name in %s', (text, name) => {
    expect(() => parseExactJson(text)).toThrow(
      new JsonError(`the member ${name} is there more than once`),
    );
  });

  it.each([
    '{"a":{"a":1}}',
    '[{"a":1},{"a":1}]',
    '{"a":"a","b":"a"}',
    '{"a":["a","a"]}',
    '["a","a"]',
  ])('accepts %s, where no object has a name twice', (text) => {
    expect(() => parseExactJson(text)).not.toThrow();
  });

  it('keeps __proto__ a member like any other', () => {
    const value = parseExactJson('{"__proto__": {"id": 1}}') as object;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.keys(value)).toEqual(['__proto__']);
  });

  it.each(['[', '{"a":'])('accepts %s nested to the limit and refuses one level more', (open) => {
    const close = open === '[' ? ']' : '}';
    const nested = (depth: number) => open.repeat(depth) + '1' + close.repeat(depth);
    expect(() => parseExactJson(nested(MAX_DEPTH))).not.toThrow();
    expect(() => parseExactJson(nested(MAX_DEPTH + 1))).toThrow(/nested deeper/);
  });

  it.each([
    '',
    ' ',
    'nul',
    '{',
    '}',
    ']',
    '{"a":1,}',
    "{'a':1}",
    '[1,]',
    '{"a"}',
    '01',
    '+1',
    '.5',
    '1.',
    'NaN',
    'Infinity',
    '0x10',
    '1_000',
    '"a',
    '"\\x"',
    '{"\\x":1}',
    '"\u0001"',
    '"a\nb"',
    '\ufeff{}',
    '{}{}',
    '// comment\n{}',
    '{"a":1} x',
  ])('refuses %j, which is not JSON', (text) => {
    expect(() => parseExactJson(text)).toThrow(JsonError);
  });
});
