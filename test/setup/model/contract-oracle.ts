/**
 * The verdict of the contract about a body, found by other means than those of the service: a text is reduced value by
 * value instead of read from left to right, and numbers are compared as decimal fractions.
 */

import { isRequired, TEXT_FIELDS, type Plant } from '../../../src/plants/dto/plant.js';
import { recordOf } from './plant.js';

/** A plant, with its id as decimal digits, as a row has it: a text that is missing is null. */
export type ExpectedPlant = { readonly id: string } & {
  readonly [Field in keyof Plant]-?: string | null;
};

/** The plant to store, or the error; with 40005, the fields that its message names. */
export type Verdict =
  | { readonly plant: ExpectedPlant }
  | { readonly error: number; readonly fields?: readonly string[] };

const MAX_DEPTH = 512;

/** @param limit BODY_LIMIT, in bytes */
export function verdictOn(body: Buffer, limit: number): Verdict {
  if (body.length === 0) return { error: 40001 };
  if (body.length > limit) return { error: 40003 };
  const value = parse(body);
  if (value === undefined) return { error: 40004 };
  if (value.kind !== 'object') return { error: 40005, fields: [] };
  const { members } = value;
  const fields = {
    id: integerOf(members.get('id')),
    ...recordOf(TEXT_FIELDS, (field) =>
      members.has(field) || isRequired(field) ? textOf(members.get(field)) : null,
    ),
  };
  const wrong = Object.entries(fields).filter(([, text]) => text === undefined);
  return wrong.length === 0
    ? { plant: fields as ExpectedPlant }
    : { error: 40005, fields: wrong.map(([field]) => field).sort() };
}

type Value =
  | { readonly kind: 'number'; readonly source: string }
  | { readonly kind: 'string'; readonly text: string }
  | { readonly kind: 'object'; readonly members: ReadonlyMap<string, Value> }
  | { readonly kind: 'other' };

/** The grammar of RFC 8259, sections 3, 6 and 7. */
const CHARACTERS = '[ !#-\\[\\]-\\uffff]*';
const STRING = `"${CHARACTERS}(?:\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4})${CHARACTERS})*"`;
const NUMBER = '-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][-+]?[0-9]+)?';
const TOKEN = `[ \\t\\r\\n]+|(?<string>${STRING})|(?<number>${NUMBER})|(?<other>true|false|null)|(?<mark>[{}[\\],:])`;

/** Arrays and objects that contain no arrays and objects any more. S is a string, V another value, before its number. */
const INNERMOST = /\[(?:[SV]\d+(?:,[SV]\d+)*)?\]|\{(?:S\d+:[SV]\d+(?:,S\d+:[SV]\d+)*)?\}/g;

/** @returns undefined if the bytes are not JSON, repeat a field, or are nested too deep */
function parse(body: Buffer): Value | undefined {
  const values: Value[] = [];
  const add = (value: Value) => `${value.kind === 'string' ? 'S' : 'V'}${values.push(value) - 1}`;
  let rest = tokensOf(body)
    ?.map(({ groups = {} }) => {
      if (groups['string'] !== undefined)
        return add({ kind: 'string', text: unescape(groups['string']) });
      if (groups['number'] !== undefined) return add({ kind: 'number', source: groups['number'] });
      return groups['other'] !== undefined ? add({ kind: 'other' }) : (groups['mark'] ?? '');
    })
    .join('');
  if (rest === undefined) return undefined;
  let isRepeated = false;
  const reduce = (part: string) => {
    if (part.startsWith('[')) return add({ kind: 'other' });
    const members = new Map<string, Value>();
    for (const [, name, value] of part.matchAll(/S(\d+):[SV](\d+)/g)) {
      const { text } = values[Number(name)] as Value & { kind: 'string' };
      isRepeated ||= members.has(text);
      members.set(text, values[Number(value)]!);
    }
    return add({ kind: 'object', members });
  };
  // Each round removes one level of nesting.
  for (let round = 0, before = ''; round < MAX_DEPTH && rest !== before; round++) {
    before = rest;
    rest = rest.replace(INNERMOST, reduce);
  }
  const [, top] = /^[SV](\d+)$/.exec(rest) ?? [];
  return top === undefined || isRepeated ? undefined : values[Number(top)];
}

function tokensOf(body: Buffer): RegExpExecArray[] | undefined {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    return undefined;
  }
  const tokens: RegExpExecArray[] = [];
  const token = new RegExp(TOKEN, 'y');
  while (token.lastIndex < text.length) {
    const match = token.exec(text);
    if (match === null) return undefined;
    tokens.push(match);
  }
  return tokens;
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

function unescape(source: string): string {
  return source
    .slice(1, -1)
    .replace(/\\(?:u(....)|(.))/g, (_all, hex: string | undefined, char: string) =>
      hex === undefined
        ? (SHORT_ESCAPES[char] ?? char)
        : String.fromCharCode(Number.parseInt(hex, 16)),
    );
}

/** @returns the digits, or undefined if the value is not an integer of 64 bits */
function integerOf(value: Value | undefined): string | undefined {
  if (value?.kind !== 'number') return undefined;
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]\+?(-?\d+))?$/.exec(value.source)!;
  const digits = BigInt(sign + whole + fraction);
  if (digits === 0n) return '0';
  const power = BigInt(exponent) - BigInt(fraction.length);
  // 10 to a power of this size has more digits than the number, or than 64 bits have.
  const largest = BigInt(whole.length + fraction.length + 20);
  if (power > largest || power < -largest) return undefined;
  const factor = 10n ** (power < 0n ? -power : power);
  if (power < 0n && digits % factor !== 0n) return undefined;
  const integer = power < 0n ? digits / factor : digits * factor;
  return BigInt.asIntN(64, integer) === integer ? String(integer) : undefined;
}

/** @returns undefined if the value is not a string, or cannot be stored */
function textOf(value: Value | undefined): string | undefined {
  if (value?.kind !== 'string') return undefined;
  // A surrogate that is not half of a pair is a character of its own in this mode.
  return value.text.includes('\0') || /\p{Surrogate}/u.test(value.text) ? undefined : value.text;
}
