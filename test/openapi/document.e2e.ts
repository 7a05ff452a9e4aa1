import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse as parseYaml } from 'yaml';
import { describeApp } from '../../src/app.js';
import { ErrorCode } from '../../src/errors/error-codes.js';
import { runInProcess } from '../setup/service/cli.js';
import { startService, type TestService } from '../setup/service/service.js';

const ERROR = { $ref: '#/components/schemas/Error' };

const headers = (...names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

/** A response with the Error schema, and examples that a test below checks. */
const errorResponse = (description: string, ...headerNames: string[]) => ({
  description,
  headers: headers('X-Request-Id', ...headerNames),
  content: { 'application/json': { schema: ERROR, examples: expect.any(Object) } },
});

/** Written by hand from the specification, not from the output of the generator. */
const EXPECTED = {
  openapi: '3.1.0',
  info: {
    title: 'OpenAPI Plant Store',
    version: '1.0.0',
    description: expect.any(String),
    contact: { name: 'The operator of the service' },
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [
    {
      url: '{base_url}',
      variables: {
        base_url: { default: 'http://127.0.0.1:3000', description: expect.any(String) },
      },
    },
  ],
  security: [{ bearerAuth: [] }],
  tags: [{ name: 'plants', description: expect.any(String) }],
  paths: {
    '/plants': {
      post: {
        operationId: 'createPlant',
        tags: ['plants'],
        summary: 'Store a plant',
        description: expect.any(String),
        requestBody: {
          required: true,
          description: 'The plant to store',
          content: {
            'application/json': {
              schema: { $ref: '#/components/schemas/NewPlant' },
              examples: {
                withTag: {
                  summary: 'With a tag',
                  value: { id: 1649503004888048, name: 'Equisetum fluviatile', tag: 'Equisetum' },
                },
                withoutTag: {
                  summary: 'Without a tag',
                  value: { id: 1371039225586142, name: 'Malva neglecta' },
                },
              },
            },
          },
        },
        responses: {
          200: {
            description: 'The plant is stored',
            headers: headers('X-Request-Id'),
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Plant' } } },
          },
          400: errorResponse('The request failed'),
          401: errorResponse('The bearer token is missing or not valid', 'WWW-Authenticate'),
          429: errorResponse('Too many tokens from this address were not valid', 'Retry-After'),
          500: errorResponse('A fault of the service; sending the same request again is safe'),
          503: errorResponse(
            'The service cannot do its work now; sending the same request again is safe',
            'Retry-After',
          ),
        },
      },
    },
  },
  components: {
    securitySchemes: {
      bearerAuth: { type: 'http', scheme: 'bearer', description: expect.any(String) },
    },
    headers: {
      'X-Request-Id': { description: expect.any(String), schema: { type: 'string' } },
      'WWW-Authenticate': { description: expect.any(String), schema: { type: 'string' } },
      'Retry-After': { description: expect.any(String), schema: { type: 'integer' } },
    },
    schemas: {
      Plant: {
        type: 'object',
        required: ['name'],
        properties: {
          name: {
            type: 'string',
            description: 'The name of the plant',
            examples: ['Equisetum fluviatile'],
          },
          tag: {
            type: 'string',
            description: 'Tag that specifies the type',
            examples: ['Equisetum'],
          },
        },
      },
      NewPlant: {
        allOf: [
          { $ref: '#/components/schemas/Plant' },
          {
            type: 'object',
            required: ['id'],
            properties: {
              id: {
                type: 'integer',
                format: 'int64',
                description: 'Identification number of the plant',
                examples: [1649503004888048],
              },
            },
          },
        ],
      },
      Error: {
        type: 'object',
        required: ['error', 'message'],
        properties: {
          error: { type: 'integer', format: 'int32', description: 'Numeric error value' },
          message: { type: 'string', description: 'Error text' },
        },
      },
    },
  },
};

describe('the OpenAPI document', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it('matches the specification', async () => {
    expect(plain(await describeApp())).toEqual(EXPECTED);
  });

  it('is the same whether it is generated, committed, or served as JSON or as YAML', async () => {
    const generated = plain(await describeApp()) as typeof EXPECTED;
    const committed = await readFile(new URL('../../openapi.json', import.meta.url), 'utf8');
    const json = await service.request('/openapi.json');
    const yaml = await service.request('/openapi.yaml');
    expect(committed).toBe(`${JSON.stringify(generated, null, 2)}\n`);
    const { exitCode, stdout } = await runInProcess(['openapi'], {});
    expect([exitCode, stdout]).toEqual([0, committed]);
    generated.servers[0]!.variables.base_url.default = service.url;
    expect(json.headers.get('content-type')).toContain('application/json');
    expect(json.body).toEqual(generated);
    expect(yaml.headers.get('content-type')).toContain('yaml');
    expect(parseYaml(yaml.body as string)).toEqual(generated);
  });

  it('has every error number in its description', async () => {
    const { info } = plain(await describeApp()) as { info: { description: string } };
    const numbers = [...info.description.matchAll(/^\| (\d+) \|/gm)].map(([, it]) => Number(it));
    expect(numbers).toEqual(Object.values(ErrorCode).sort((a, b) => a - b));
  });
});

/** The document as clients receive it: JSON has no undefined members. */
function plain(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document)) as unknown;
}
