import { describe, expect, it } from '@jest/globals';
import { generator } from '../../test/setup/model/random.js';
import { JsonError, MAX_DEPTH, parseExactJson, type JsonValue } from './exact-json.js';

it.each([
  ['9223372036854775807', 9223372036854775807n],
  ['-12.5e1', -125n],
])('the number %s is read as the integer %s', (text, value) => {
  expect(parseExactJson(text)).toBe(value);
});

it.each(['9223372036854775808', '9007199254740993.5', '1.0000000000000000000001', '1e400'])(
  'the number %s is not read as an int64',
  (text) => {
    expect(parseExactJson(text)).toBe(Number(text));
  },
);

it('a long run of zeros is read in time that grows with its length only', () => {
  const zeros = '0'.repeat(1_000_000);
  expect(typeof parseExactJson(`1.${zeros}1`)).toBe('number');
  expect(parseExactJson(`1.${zeros}`)).toBe(1n);
});

describe('an object', () => {
  it.each([
    ['{"a":1,"b":2,"a":1}', '"a"'],
    ['[{"x":{"a":1,"\\u0061":2}}]', '"a"'],
    ['{"":1,"":2}', '""'],
    ['{"a\\"b":1,"a\\"b":2}', '"a\\"b"'],
    ['{"__proto__":1,"__proto__":2}', '"__proto__"'],
  ])('with a name twice is refused, with the name: %s', (text, name) => {
    expect(() => parseExactJson(text)).toThrow(
      new JsonError(`the field ${name} occurs more than once`),
    );
  });

  it('may have the names of another object, and of Object.prototype', () => {
    const text = '{"a":{"a":{"b":0.5}},"b":"a","toString":2.5}';
    expect(parseExactJson(text)).toEqual(JSON.parse(text));
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

it('accepts and refuses the same texts as JSON.parse, and reads the same values', () => {
  const texts = [
    '{"id": -12, "name": "a\\u00e9\\n", "tag": [1.5e3, true, null, {}, [], "\\ud83d\\ude00"]}',
    '{"a":{"b":{"c":[0,-0,1E-2,"\\"",false]}},"__proto__":{"x":""}}',
  ];
  const pieces = [
    ...'{}[]:,"\\ \t\n\r\f0123456789+-.eEtfnu\u0000\u001f\u00a0\ufeffé',
    'true',
    '\\u12',
  ];
  const notRefused: string[] = [];
  let accepted = 0;
  for (const random = generator(1); accepted < 5000;) {
    const text = mutate(texts[random(texts.length)]!, pieces, random);
    const expected = outcomeOf(() => JSON.parse(text) as JsonValue);
    const actual = outcomeOf(() => parseExactJson(text));
    if (actual instanceof JsonError && actual.message.includes('more than once')) continue;
    if (expected instanceof Error) {
      // A call of expect for each of these texts would take most of the time.
      if (!(actual instanceof JsonError)) notRefused.push(text);
    } else {
      expect(rounded(actual as JsonValue)).toEqual(rounded(expected));
      accepted++;
    }
  }
  expect(notRefused).toEqual([]);
});

/** Inserts, replaces or removes characters in a few places. */
function mutate(
  text: string,
  pieces: readonly string[],
  random: (below: number) => number,
): string {
  let mutated = text;
  for (let changes = random(3); changes >= 0; changes--) {
    const at = random(mutated.length + 1);
    const piece = random(3) === 0 ? '' : pieces[random(pieces.length)]!;
    mutated = mutated.slice(0, at) + piece + mutated.slice(at + random(2));
  }
  return mutated;
}

function outcomeOf(parse: () => JsonValue): JsonValue | Error {
  try {
    return parse();
  } catch (error) {
    return error as Error;
  }
}

/** Replaces each bigint by a number, as JSON.parse does, and minus zero by zero, because a bigint has no minus zero. */
function rounded(value: JsonValue): unknown {
  // Minus zero plus zero is zero.
  if (typeof value === 'bigint' || typeof value === 'number') return Number(value) + 0;
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, rounded(member)]));
}
