import { describe, expect, it } from '@jest/globals';
import { JsonError, MAX_DEPTH, parseExactJson, type JsonValue } from './exact-json.js';

describe('a number', () => {
  it.each<[string, JsonValue]>([
    ['0', 0n],
    ['-0', 0n],
    ['7', 7n],
    ['10', 10n],
    ['-12', -12n],
    ['5.0', 5n],
    ['12.50', 12.5],
    ['1e2', 100n],
    ['1E+12', 1000000000000n],
    ['120e-1', 12n],
    ['120e-11', 120e-11],
    ['9007199254740993', 9007199254740993n],
    ['9223372036854775807', 9223372036854775807n],
    ['9223372036854775808', 9223372036854775808],
    ['1.0000000000000000000001', 1],
  ])('%s is read as %p', (text, value) => {
    expect(parseExactJson(text)).toBe(value);
  });

  it.each(['01', '-', '-a', '+1', '.5', '1.', '1.e1', '1e', '1e+', '0x1', 'NaN', '1 2'])(
    '%s is refused',
    (text) => {
      expect(() => parseExactJson(text)).toThrow(JsonError);
    },
  );
});

describe('a word', () => {
  it.each<[string, JsonValue]>([
    ['true', true],
    ['false', false],
    ['null', null],
    ['[true,false,null]', [true, false, null]],
  ])('in %s is read', (text, value) => {
    expect(parseExactJson(text)).toEqual(value);
  });

  it.each(['', 'tru', 'True', 'xtrue', 'truefalse', 'nul', 'undefined'])(
    '%j is refused',
    (text) => {
      expect(() => parseExactJson(text)).toThrow(JsonError);
    },
  );
});

describe('a string', () => {
  it.each([
    ['""', ''],
    ['"a b"', 'a b'],
    ['"é😀"', 'é😀'],
    ['"\u007f"', '\u007f'],
    ['"\\""', '"'],
    ['"\\\\"', '\\'],
    ['"a\\nb\\/"', 'a\nb/'],
    ['"\\u00e9\\ud83d\\ude00"', 'é😀'],
    ['"\\ud83d"', '\ud83d'],
  ])('%s is read as %j', (text, value) => {
    expect(parseExactJson(text)).toBe(value);
    expect(parseExactJson(`[${text},1]`)).toEqual([value, 1n]);
    expect(parseExactJson(`{${text}:1}`)).toEqual({ [value]: 1n });
  });

  it.each(['"', '"a', '"\\"', '"\\', '"\\x"', '"\\u12"', '"a\nb"', '"\u001f"', '"a"b', "'a'"])(
    '%j is refused',
    (text) => {
      expect(() => parseExactJson(text)).toThrow(JsonError);
      expect(() => parseExactJson(`{${text}:1}`)).toThrow(JsonError);
    },
  );
});

describe('an object', () => {
  it.each<[string, JsonValue]>([
    ['{}', {}],
    ['{"a":1}', { a: 1n }],
    ['{"a":{},"b":[],"c":""}', { a: {}, b: [], c: '' }],
    ['{"a":{"a":{"a":1}}}', { a: { a: { a: 1n } } }],
    ['{"a":"a","b":"a"}', { a: 'a', b: 'a' }],
    ['{"hasOwnProperty":1,"toString":2}', { hasOwnProperty: 1n, toString: 2n }],
  ])('%s is read', (text, value) => {
    expect(parseExactJson(text)).toEqual(value);
  });

  it.each([
    ['is not closed', '{'],
    ['is not closed', '{"a":1'],
    ['is not closed', '{"a":{"b":1}'],
    ['is closed as an array', '{"a":1]'],
    ['is closed twice', '{}}'],
    ['is followed by another one', '{"a":1}{"a":1}'],
    ['has a comma too many', '{"a":1,}'],
    ['has a comma too many', '{,}'],
    ['has a comma too few', '{"a":1 "b":2}'],
    ['has a name without a value', '{"a"}'],
    ['has a name without a value', '{"a":}'],
    ['has no colon', '{"a" 1}'],
    ['has a name without quotes', '{a:1}'],
    ['has a name that is not a string', '{1:1}'],
    ['has a name with single quotes', "{'a':1}"],
  ])('that %s is refused: %s', (_problem, text) => {
    expect(() => parseExactJson(text)).toThrow(JsonError);
  });

  it.each([
    ['{"a":1,"a":1}', '"a"'],
    ['{"x":{"a":1,"b":2,"a":3}}', '"a"'],
    ['[{"a":1,"\\u0061":2}]', '"a"'],
    ['{"":1,"":2}', '""'],
    ['{"a\\"b":1,"a\\"b":2}', '"a\\"b"'],
    ['{"__proto__":1,"__proto__":2}', '"__proto__"'],
  ])('with a name twice is refused, with the name: %s', (text, name) => {
    expect(() => parseExactJson(text)).toThrow(
      new JsonError(`the field ${name} occurs more than once`),
    );
  });

  it('has a field __proto__ like any other, which changes no prototype', () => {
    const object = parseExactJson('{"__proto__":{"a":1},"b":2}') as Record<string, JsonValue>;
    expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
    expect(Object.getOwnPropertyDescriptors(object)).toEqual({
      ['__proto__']: { value: { a: 1n }, enumerable: true, configurable: true, writable: true },
      b: { value: 2n, enumerable: true, configurable: true, writable: true },
    });
  });
});

describe('an array', () => {
  it.each<[string, JsonValue]>([
    ['[]', []],
    ['[1]', [1n]],
    ['[1,"a",1]', [1n, 'a', 1n]],
    ['[[],[[]],{}]', [[], [[]], {}]],
    ['[{"a":1},{"a":1}]', [{ a: 1n }, { a: 1n }]],
  ])('%s is read', (text, value) => {
    expect(parseExactJson(text)).toEqual(value);
  });

  it.each([
    ['is not closed', '['],
    ['is not closed', '[1'],
    ['is not closed', '[[1]'],
    ['is closed as an object', '[1}'],
    ['is closed twice', '[]]'],
    ['has a comma too many', '[1,]'],
    ['has a comma too many', '[,]'],
    ['has a comma too few', '[1 2]'],
  ])('that %s is refused: %s', (_problem, text) => {
    expect(() => parseExactJson(text)).toThrow(JsonError);
  });
});

describe('white space', () => {
  it.each([' ', '\n', '\r', '\t', ' \t\r\n '])('%j may be around every value and sign', (space) => {
    const pieces = ['{', '"a"', ':', '[', '1', ',', 'true', ']', ',', '"b"', ':', '{', '}', '}'];
    const text = space + pieces.join(space) + space;
    expect(parseExactJson(text)).toEqual({ a: [1n, true], b: {} });
    expect(parseExactJson(`[${space}]`)).toEqual([]);
  });

  it('without a value is refused', () => {
    expect(() => parseExactJson('  ')).toThrow(JsonError);
  });

  it.each(['\f', '\v', '\u00a0', '\u2028', '\ufeff', '/**/'])(
    '%j is none, and is refused',
    (text) => {
      expect(() => parseExactJson(`${text}{}`)).toThrow(JsonError);
      expect(() => parseExactJson(`{}${text}`)).toThrow(JsonError);
    },
  );
});

describe('nesting', () => {
  it.each([
    ['arrays', '[', ']'],
    ['objects', '{"a":', '}'],
  ])('of %s is allowed to the limit and refused beyond it', (_kind, open, close) => {
    const nested = (depth: number) => open.repeat(depth) + '1' + close.repeat(depth);
    expect(() => parseExactJson(nested(MAX_DEPTH))).not.toThrow();
    expect(() => parseExactJson(nested(MAX_DEPTH + 1))).toThrow(
      new JsonError('it is nested deeper than 512 levels'),
    );
  });

  it('counts only what surrounds a value, not what was closed before it', () => {
    const closed = '[],{},'.repeat(MAX_DEPTH);
    expect(() => parseExactJson(`[${closed}[]]`)).not.toThrow();
  });
});

it('a refusal has the message of JSON.parse, which names the problem and its place', () => {
  const message = 'Expected double-quoted property name in JSON at position 7 (line 1 column 8)';
  expect(() => parseExactJson('{"a":1,}')).toThrow(
    expect.objectContaining({ name: 'JsonError', message, cause: new SyntaxError(message) }),
  );
});
