import fc, { type Arbitrary } from 'fast-check';

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/** An id that fits, as a client may have it. */
export const anyInt64: Arbitrary<bigint> = fc.oneof(
  fc.bigInt(INT64_MIN, INT64_MAX),
  fc.constantFrom(INT64_MIN, INT64_MAX, 2n ** 53n + 1n),
  // Few, so that two plants have the same id.
  fc.bigInt(0n, 2n),
);

/** A text that can be stored: without NUL, and without halves of surrogate pairs. */
export const anyStorableText: Arbitrary<string> = fc
  .string({ unit: 'binary', size: 'medium' })
  .map((text) => text.replaceAll('\0', ''));

const zeros = fc.nat(25).map((count) => '0'.repeat(count));

/** The digits of an integer that fits, or nearly fits. */
const integer = fc
  .oneof(
    anyInt64,
    fc.bigInt(INT64_MIN - 3n, INT64_MIN + 3n),
    fc.bigInt(INT64_MAX - 3n, INT64_MAX + 3n),
  )
  .map(String);

/** The notations of an integer. */
const integerNotation = fc.oneof(
  { weight: 3, arbitrary: integer },
  fc.tuple(integer, zeros).map(([digits, tail]) => `${digits}.0${tail}`),
  fc.tuple(integer, zeros).map(([digits, tail]) => `${digits}${tail}e-${tail.length}`),
  fc
    .tuple(integer, zeros, fc.constantFrom('e', 'E', 'e+', 'E+', 'E+00'))
    .map(([digits, { length }, mark]) => withPoint(digits, length) + mark + length),
  fc.constantFrom('-0', '-0.0', '0e99999999999', '0E-1', '1e3', '10e-1', '100E-0002'),
);

const noInteger = fc.oneof(
  fc.tuple(integer, zeros).map(([digits, tail]) => `${digits}.${tail}1`),
  fc.tuple(integer, zeros).map(([digits, tail]) => `${digits}${tail}e-${tail.length + 1}`),
  fc.tuple(integer, fc.integer()).map(([digits, power]) => `${digits}e${power}`),
  fc.constantFrom('1E400', '1e-400', '0.1', '-1.5e0', '1e19', '1e99999999999999999999'),
  fc.constantFrom(
    '01',
    '-',
    '+1',
    '.5',
    '1.',
    '1e',
    '0x1',
    'NaN',
    '-Infinity',
    '1_0',
    '00',
    '1.e1',
  ),
);

/** A number, mostly one that is an id in some notation. */
export const anyNumber = fc.oneof(
  { weight: 6, arbitrary: integerNotation },
  { weight: 1, arbitrary: noInteger },
);

/** The integer with its point moved to the left. */
function withPoint(integer: string, places: number): string {
  const [, sign, digits] = /^(-?)(\d+)$/.exec(integer)!;
  const padded = digits!.padStart(places + 1, '0');
  const at = padded.length - places;
  return `${sign}${padded.slice(0, at)}${places === 0 ? '' : `.${padded.slice(at)}`}`;
}

const escape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** A character of a JSON string, as it is or escaped, but never one that a JSON string must escape. */
const character = fc.oneof(
  fc
    .string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 8 })
    .map((text) => JSON.stringify(text).slice(1, -1)),
  fc
    .string({ unit: 'binary', minLength: 1, maxLength: 1 })
    .map((text) => JSON.stringify(text).slice(1, -1)),
  fc
    .string({ unit: 'binary', minLength: 1, maxLength: 1 })
    .map((text) => text.split('').map(escape).join('')),
  fc.constantFrom(
    '\\"',
    '\\\\',
    '\\/',
    '\\b',
    '\\f',
    '\\n',
    '\\r',
    '\\t',
    '\\u00E9',
    '\\uD83D\\uDE00',
  ),
);

/** Refused by the grammar, or because it cannot be stored. */
const oddCharacter = fc.oneof(
  fc.constantFrom('\\u0000', '\\ud800', '\\uDC00', '\\uDE00\\uD83D', '\\ud800\\n'),
  fc.constantFrom('\u0001', '\n', '\t', '\\x', '\\u12', '\\u12g4', '\\U0041', '\\', '"', '\0'),
);

const quoted = (parts: readonly string[]) => `"${parts.join('')}"`;

/** A string, which may be one that JSON or the contract refuses. */
export const anyString = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('""', '"a"', '"b"') },
  { weight: 12, arbitrary: fc.array(character, { maxLength: 8 }).map(quoted) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.array(character, { maxLength: 2 }),
        oddCharacter,
        fc.array(character, { maxLength: 2 }),
      )
      .map(([before, odd, after]) => quoted([...before, odd, ...after])),
  },
);

/** Names that code takes for a sign of a special object, or finds in every object. */
const hostileName = fc
  .oneof(
    fc.constantFrom('constructor', '__proto__', 'then', 'toJSON', 'length', 'prototype', 'name'),
    fc.constantFrom(...Object.getOwnPropertyNames(Object.prototype), 'size', 'type', '$ref', '0'),
  )
  .map((name) => JSON.stringify(name));

/** The name of a field that the contract does not know. */
export const anyName = fc.oneof(anyString, hostileName);

/** More of them than levels of nesting are allowed. */
const manyEmpty = fc
  .constantFrom('[]', '{}')
  .map((empty) => `[${Array<string>(600).fill(empty).join()}]`);

/** An array or object of nearly the greatest depth. The plant around it is one level, too. */
export const anyDeepValue = fc
  .tuple(fc.integer({ min: 510, max: 512 }), fc.constantFrom(['[', ']'], ['{"a":', '}']))
  .map(([depth, [open, close]]) => `${open.repeat(depth)}1${close.repeat(depth)}`);

const { value } = fc.letrec<{ value: string; leaf: string }>((tie) => ({
  leaf: fc.oneof(
    { weight: 3, arbitrary: anyNumber },
    { weight: 3, arbitrary: anyString },
    { weight: 2, arbitrary: fc.constantFrom('true', 'false', 'null') },
    { weight: 1, arbitrary: fc.constantFrom('nul', 'True', 'undefined', '') },
    { weight: 1, arbitrary: anyDeepValue },
    { weight: 1, arbitrary: fc.oneof(fc.constantFrom('[]', '{}'), manyEmpty) },
  ),
  value: fc.oneof(
    { maxDepth: 3 },
    tie('leaf'),
    fc.array(tie('value'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
    fc
      .array(fc.tuple(anyName, tie('value')), { maxLength: 3 })
      .map((members) => `{${members.map((member) => member.join(':')).join(',')}}`),
  ),
}));

/** The text of a JSON value, or of nearly one. */
export const anyValue: Arbitrary<string> = value;

/** An object or an array, some levels deep, in which all names are hostile. */
export const anyHostileTree: Arbitrary<string> = treeOf(3);

function treeOf(levels: number): Arbitrary<string> {
  const scalar = fc.constantFrom('1', '"a"', 'true', 'null', '{}', '[]');
  const value = levels === 1 ? scalar : fc.oneof(scalar, treeOf(levels - 1));
  const members = fc.uniqueArray(fc.tuple(hostileName, value), {
    selector: ([name]) => name,
    minLength: 1,
    maxLength: 3,
  });
  return fc.oneof(
    members.map((some) => `{${some.map((member) => member.join(':')).join(',')}}`),
    fc.array(value, { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
  );
}
