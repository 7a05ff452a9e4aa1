import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../setup/service/service.js';

interface Schema {
  readonly $ref?: string;
  readonly allOf?: Schema[];
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Record<string, Schema>;
  readonly required?: string[];
  readonly description?: string;
  readonly examples?: unknown[];
}

interface Document {
  readonly paths: Record<
    string,
    Record<
      string,
      {
        readonly requestBody: {
          readonly content: Record<
            string,
            { readonly schema: Schema; readonly examples: Record<string, { value: unknown }> }
          >;
        };
      }
    >
  >;
  readonly components: { readonly schemas: Record<string, Schema> };
}

const document = JSON.parse(
  readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'),
) as Document;
const { requestBody } = document.paths['/plants']!['post']!;
const { schema, examples } = requestBody.content['application/json']!;

/** The keywords for which the requests below contain a violation; another one needs more requests. */
const KNOWN = new Set('$ref allOf type format properties required description examples'.split(' '));

/** All properties and required names of a schema, its parts included. */
function resolve(part: Schema): { properties: Record<string, Schema>; required: string[] } {
  for (const keyword of Object.keys(part)) {
    if (!KNOWN.has(keyword)) throw new Error(`No request violates the keyword ${keyword}.`);
  }
  const parts = [...(part.allOf ?? [])];
  if (part.$ref !== undefined) {
    parts.push(document.components.schemas[part.$ref.replace('#/components/schemas/', '')]!);
  }
  const resolved = parts.map(resolve);
  return {
    properties: Object.assign(
      {},
      ...resolved.map((it) => it.properties),
      part.properties,
    ) as Record<string, Schema>,
    required: [...resolved.flatMap((it) => it.required), ...(part.required ?? [])],
  };
}

/** JSON texts of each type and its boundaries: the text, because numbers of JavaScript are rounded. */
const TEXTS: Readonly<Record<string, readonly string[]>> = {
  string: ['""', '"a"', '"é😀\\u0001\\ud83d\\ude00"', `"${'x'.repeat(10_000)}"`, '"5"', '"null"'],
  integer: ['0', '-0', '1', '-1', '5.0', '1e2', '12.5e1', '9007199254740993'],
  number: ['0.5', '1e-1', '-1.5', '1e400', '9007199254740993.5'],
  boolean: ['true', 'false'],
  null: ['null'],
  array: ['[]', '[1]', '["a"]'],
  object: ['{}', '{"id":1,"name":"a"}'],
};

/** The OpenAPI registry of formats: the range of a format, at its limits and one beyond. */
const FORMATS: Readonly<Record<string, { valid: string[]; invalid: string[] }>> = {
  int64: {
    valid: ['-9223372036854775808', '9223372036854775807'],
    invalid: ['-9223372036854775809', '9223372036854775808', '1e19', '-1e400'],
  },
};

const { properties, required } = resolve(schema);
const names = Object.keys(properties);

const typed = (type: string) => Object.keys(TEXTS).filter((it) => it !== type);
const validTexts = ({ type, format }: Schema) => [
  ...TEXTS[type!]!,
  ...(format === undefined ? [] : FORMATS[format]!.valid),
];
const invalidTexts = ({ type, format }: Schema) => [
  ...typed(type!).flatMap((it) => TEXTS[it]!),
  ...(format === undefined ? [] : FORMATS[format]!.invalid),
];

/** A body with the example of every property, except for the members given; undefined leaves a member out. */
function bodyWith(members: Record<string, string | undefined>): string {
  const texts = names.map((name) => [name, JSON.stringify(properties[name]!.examples![0])]);
  const all = Object.entries({ ...Object.fromEntries(texts), ...members } as typeof members);
  return `{${all
    .filter(([, text]) => text !== undefined)
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join()}}`;
}

const VALID: readonly string[] = [
  ...Object.values(examples).map(({ value }) => JSON.stringify(value)),
  ...names.flatMap((name) =>
    validTexts(properties[name]!).map((text) => bodyWith({ [name]: text })),
  ),
  ...names.filter((it) => !required.includes(it)).map((name) => bodyWith({ [name]: undefined })),
  // The schema closes nothing: other members may have any value.
  ...Object.values(TEXTS).map(([text]) => bodyWith({ other: text })),
  bodyWith({ NAME: '5', 'id ': '"x"', __proto__x: 'null' }),
];

const INVALID: readonly string[] = [
  ...names.flatMap((name) =>
    invalidTexts(properties[name]!).map((text) => bodyWith({ [name]: text })),
  ),
  ...required.map((name) => bodyWith({ [name]: undefined })),
  ...typed('object').flatMap((type) => TEXTS[type]!),
  '{}',
];

/** The helpers check the responses themselves: see setup/http/documented.ts. */
describe('a request made from the OpenAPI document', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it('is valid or not by the judgment of a validator, as long as JavaScript can hold its numbers', () => {
    const ajv = new Ajv2020({ strict: false, validateSchema: false, meta: false });
    addFormats.default(ajv);
    const isValid = ajv
      .addSchema(document, 'document')
      .getSchema('document#/components/schemas/NewPlant')!;
    const isExact = (text: string) => !/\d{16}|e19|e400/.test(text);
    for (const body of VALID.filter(isExact))
      expect([body, isValid(JSON.parse(body))]).toEqual([body, true]);
    for (const body of INVALID.filter(isExact))
      expect([body, isValid(JSON.parse(body))]).toEqual([body, false]);
  });

  it('is accepted if it is valid: the response is the plant', async () => {
    for (const body of VALID) {
      await service.database.query('TRUNCATE plants');
      const sent = Object.entries(JSON.parse(body) as Record<string, unknown>);
      const plant = sent.filter(([name]) => name !== 'id' && names.includes(name));
      const { status, body: received } = await service.post(body);
      expect({ body, status, received }).toEqual({
        body,
        status: 200,
        received: Object.fromEntries(plant),
      });
    }
  });

  it('is refused with 40005 if it is not, and nothing is stored', async () => {
    await service.database.query('TRUNCATE plants');
    for (const body of INVALID) {
      const { status, body: received } = await service.post(body);
      expect({ body, status, received }).toEqual({
        body,
        status: 400,
        received: expect.objectContaining({ error: 40005 }),
      });
    }
    expect(await service.storedPlants()).toEqual([]);
  });
});
