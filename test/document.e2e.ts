import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse as parseYaml } from 'yaml';
import { describeApp } from '../src/app.js';
import { startService, type TestService } from './setup/service.js';

const ERROR = { $ref: '#/components/schemas/Error' };

/** A response with the Error schema, and examples that a test below checks. */
const errorResponse = (description: string) => ({
  description,
  content: { 'application/json': { schema: ERROR, examples: expect.any(Object) } },
});

/** Written by hand from the specification, not from the output of the generator. */
const EXPECTED = {
  openapi: '3.1.0',
  info: { title: 'OpenAPI Plant Store', version: '1.0.0', license: { name: 'MIT' } },
  servers: [
    {
      url: '{base_url}',
      variables: { base_url: { default: '.', description: 'Where the service is reached' } },
    },
  ],
  security: [{ bearerAuth: [] }],
  paths: {
    '/plants': {
      post: {
        operationId: 'createPlant',
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
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Plant' } } },
          },
          400: errorResponse('The request failed'),
          401: errorResponse('The bearer token is missing or not valid'),
          '5XX': errorResponse(
            'The service could not do its work; sending the same plant again is safe',
          ),
        },
      },
    },
  },
  components: {
    securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } },
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

type Examples = Record<string, { summary: string; value: { error: number; message: string } }>;

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
    const generated = plain(await describeApp());
    const committed = await readFile(new URL('../openapi.json', import.meta.url), 'utf8');
    const json = await service.request('/openapi.json');
    const yaml = await service.request('/openapi.yaml');
    expect(committed).toBe(`${JSON.stringify(generated, null, 2)}\n`);
    expect(json.headers.get('content-type')).toContain('application/json');
    expect(json.body).toEqual(generated);
    expect(yaml.headers.get('content-type')).toContain('yaml');
    expect(parseYaml(yaml.body as string)).toEqual(generated);
  });

  it('has examples of errors whose numbers match their status', async () => {
    const { paths } = plain(await describeApp()) as typeof EXPECTED;
    const numbersUnder = (status: 400 | 401 | '5XX') => {
      const examples = paths['/plants'].post.responses[status].content['application/json']
        .examples as unknown as Examples;
      return Object.values(examples).map(({ value }) => value.error);
    };
    expect(numbersUnder(400)).toEqual([40001, 40002, 40003, 40004, 40005, 40006]);
    expect(numbersUnder(401)).toEqual([40100, 40101]);
    expect(numbersUnder('5XX')).toEqual([50300, 50301, 50302, 50303]);
  });

  it('has examples that the service accepts', async () => {
    const { examples } = EXPECTED.paths['/plants'].post.requestBody.content['application/json'];
    for (const { value } of Object.values(examples)) {
      const { id: _id, ...plant } = value;
      expect(Number.isSafeInteger(value.id)).toBe(true);
      expect(await service.post(JSON.stringify(value))).toMatchObject({ status: 200, body: plant });
    }
  });
});

it.each([
  [{}, "'self'"],
  [{ BASE_URL: 'https://Plants.example.org/store' }, "'self' https://plants.example.org"],
  [{ BASE_URL: 'http://plants.example.org:8080' }, "'self' http://plants.example.org:8080"],
  [{ BASE_URL: 'http://[::1]:3000' }, "'self' http:"],
])('the page of Swagger UI may load its own files and call BASE_URL: %j', async (env, sources) => {
  const service = await startService(env);
  try {
    const { headers } = await service.request('/docs');
    const policy = headers
      .get('content-security-policy')!
      .split('; ')
      .map((it) => it.split(' '));
    const { 'style-src': styles, ...others } = Object.fromEntries(
      policy.map(([name, ...values]) => [name!, values.join(' ')]),
    );
    expect(others).toEqual({
      'default-src': "'none'",
      'script-src': "'self'",
      'img-src': "'self' data:",
      'connect-src': sources,
      'base-uri': "'none'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
    });
    expect(styles).toMatch(/^'self' 'unsafe-hashes'( 'sha256-[\w+/]{43}='){3}$/);
    // A page among the files of the library.
    const other = await service.request('/docs/oauth2-redirect.html');
    expect(other.headers.get('content-security-policy')).toContain("style-src 'self'; ");
  } finally {
    await service.close();
  }
});

it('BASE_URL becomes the default of base_url', async () => {
  const service = await startService({ BASE_URL: 'https://plants.example.org/store/' });
  try {
    const { body } = await service.request('/openapi.json');
    expect((body as typeof EXPECTED).servers[0]!.variables.base_url.default).toBe(
      'https://plants.example.org/store',
    );
  } finally {
    await service.close();
  }
});

/** The document as clients receive it: JSON has no undefined members. */
function plain(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document)) as unknown;
}
