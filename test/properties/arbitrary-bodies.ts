import fc, { type Arbitrary } from 'fast-check';
import { isRequired, PLANT_FIELDS } from '../../src/plants/dto/plant.js';
import {
  anyDeepValue,
  anyHostileTree,
  anyName,
  anyNumber,
  anyString,
  anyValue,
} from './arbitrary-json.js';

/** A body for POST /plants: a plant, nearly a plant, other JSON, or other bytes. @param limit BODY_LIMIT, in bytes */
export function anyBody(limit: number): Arbitrary<Buffer> {
  const plant = plantText.map((text) => Buffer.from(text));
  return fc.oneof(
    { weight: 10, arbitrary: plant },
    {
      weight: 3,
      arbitrary: fc.tuple(plant, anyChange(limit)).map(([body, change]) => change(body)),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(plant, fc.constantFrom(0, 1)).map(([body, more]) => {
        return Buffer.concat([body, Buffer.alloc(Math.max(0, limit + more - body.length), ' ')]);
      }),
    },
    {
      weight: 1,
      arbitrary: anyDeepValue.map((text) => Buffer.from(`{"id":1,"name":"a","x":${text}}`)),
    },
    { weight: 2, arbitrary: treesInFields.map((text) => Buffer.from(text)) },
    { weight: 1, arbitrary: anyValue.map((text) => Buffer.from(text)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)) },
  );
}

/** Objects and arrays instead of the values of a plant, some of them or all. */
const treesInFields = fc
  .tuple(
    ...PLANT_FIELDS.map((field) =>
      fc
        .oneof(fc.constant(field === 'id' ? '1' : '"a"'), anyHostileTree)
        .map((value) => `"${field}":${value}`),
    ),
  )
  .map((fields) => `{${fields.join()}}`);

const mostly = (usual: Arbitrary<string>) =>
  fc.oneof({ weight: 20, arbitrary: usual }, { weight: 1, arbitrary: anyValue });

/** @returns undefined in the other cases */
const sometimes = <Value>(percent: number, value: Arbitrary<Value>) =>
  fc.oneof(
    { weight: percent, arbitrary: value },
    { weight: 100 - percent, arbitrary: fc.constant(undefined) },
  );

const unknownName = fc.oneof(fc.constantFrom('"x"', '"ID"', '"access_token"'), anyName);

const OPTIONAL = PLANT_FIELDS.filter((field) => !isRequired(field));

const quoted = (name: string) => `"${name}"`;

/** Some fields of a plant, perhaps a known one twice, in any order. */
const members = fc
  .tuple(
    sometimes(95, fc.tuple(fc.constantFrom('"id"', '"\\u0069d"'), mostly(anyNumber))),
    sometimes(95, fc.tuple(fc.constantFrom('"name"', '"n\\u0061me"'), mostly(anyString))),
    sometimes(5, fc.tuple(fc.constantFrom(...PLANT_FIELDS.map(quoted)), anyValue)),
    sometimes(25, fc.tuple(unknownName, anyValue)),
    ...OPTIONAL.map((field) =>
      sometimes(50, fc.tuple(fc.constant(quoted(field)), mostly(anyString))),
    ),
  )
  .map((some) => some.filter((member) => member !== undefined))
  .chain((some) => fc.shuffledSubarray(some, { minLength: some.length }));

const space = fc.constantFrom('', '', '', ' ', '\n', '\t', '\r\n', '  ');

const plantText = fc
  .tuple(members, fc.tuple(space, space, space))
  .map(
    ([some, [a, b, c]]) =>
      `${a}{${b}${some.map((member) => member.join(b + ':' + c)).join(c + ',' + a)}${b}}${c}`,
  );

/** A change that makes most bodies unreadable. */
function anyChange(limit: number): Arbitrary<(body: Buffer) => Buffer> {
  const position = fc.nat(limit);
  const bytes = fc.uint8Array({ maxLength: 3 });
  return fc.oneof(
    fc.tuple(position, fc.nat(2), bytes).map(([at, removed, added]) => (body: Buffer) => {
      const start = at % (body.length + 1);
      return Buffer.concat([body.subarray(0, start), added, body.subarray(start + removed)]);
    }),
    position.map((at) => (body: Buffer) => body.subarray(0, at % (body.length + 1))),
    fc
      .constantFrom('\ufeff', '[', ' ', '{}')
      .map((text) => (body: Buffer) => Buffer.concat([Buffer.from(text), body])),
  );
}
