import { describe, expect, it } from '@jest/globals';
import { generator } from '../../test/setup/model/random.js';
import { JsonError, parseExactJson, type JsonValue } from './exact-json.js';

describe('parseExactJson', () => {
  it.each<[string, bigint]>([
    ['9223372036854775807', 9223372036854775807n],
    ['-9223372036854775808', -9223372036854775808n],
    ['-12.5e1', -125n],
    ['1E+2', 100n],
    ['5000e-3', 5n],
  ])('reads %s as the integer %s', (text, value) => {
    expect(parseExactJson(text)).toBe(value);
  });

  it.each(['0.1', '9007199254740993.5', '9223372036854775808', '1e19', '1e400'])(
    'does not read %s as an int64',
    (text) => {
      expect(parseExactJson(text)).toBe(Number(text));
    },
  );

  it('reads a long run of zeros in time that grows with its length only', () => {
    const zeros = '0'.repeat(1_000_000);
    expect(typeof parseExactJson(`1.${zeros}1`)).toBe('number');
    expect(parseExactJson(`1.${zeros}`)).toBe(1n);
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
