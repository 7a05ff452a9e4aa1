import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { parse as parseYaml } from 'yaml';
import { describeApp } from '../../src/app.js';
import { runCommand } from '../setup/process/command.js';
import { startService, type TestService } from '../setup/service/service.js';

/** What the specification fixes, written by hand. openapi.json has all of the document. */
const SPECIFIED = {
  openapi: '3.1.0',
  info: { title: 'OpenAPI Plant Store', version: '1.0.0', license: { name: 'MIT' } },
  servers: [{ url: '{base_url}' }],
  security: [{ bearerAuth: [] }],
  paths: {
    '/plants': {
      post: {
        operationId: 'createPlant',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/NewPlant' } } },
        },
        responses: {
          200: {
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Plant' } } },
          },
          400: {
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
          },
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
          name: { type: 'string', description: 'The name of the plant' },
          tag: { type: 'string', description: 'Tag that specifies the type' },
        },
      },
      NewPlant: {
        allOf: [
          { $ref: '#/components/schemas/Plant' },
          {
            required: ['id'],
            properties: {
              id: {
                type: 'integer',
                format: 'int64',
                description: 'Identification number of the plant',
              },
            },
          },
        ],
      },
      Error: {
        type: 'object',
        required: ['error', 'message'],
        properties: {
          error: { type: 'integer', format: 'int32' },
          message: { type: 'string' },
        },
      },
    },
  },
};

/** The statuses of POST /plants, and the header fields that clients may rely on. */
const HEADERS = {
  200: ['X-Request-Id'],
  400: ['X-Request-Id'],
  401: ['X-Request-Id', 'WWW-Authenticate'],
  429: ['X-Request-Id', 'Retry-After'],
  500: ['X-Request-Id'],
  503: ['X-Request-Id', 'Retry-After'],
};

describe('the OpenAPI document', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it('matches the specification', async () => {
    expect(plain(await describeApp())).toMatchObject(SPECIFIED);
  });

  it('has one operation, without parameters, with these statuses and header fields', async () => {
    const { paths } = await describeApp();
    expect(Object.entries(paths).map(([path, item]) => [path, Object.keys(item)])).toEqual([
      ['/plants', ['post']],
    ]);
    const { parameters = [], responses } = paths['/plants']!.post!;
    expect(parameters).toEqual([]);
    const declared = Object.entries(responses as Record<string, { headers: object }>);
    expect(
      Object.fromEntries(declared.map(([status, { headers }]) => [status, Object.keys(headers)])),
    ).toEqual(HEADERS);
  });

  it('is the same whether it is generated, committed, or served as JSON or as YAML', async () => {
    const generated = plain(await describeApp()) as OpenAPIObject;
    const committed = await readFile(new URL('../../openapi.json', import.meta.url), 'utf8');
    const json = await service.request('/openapi.json');
    const yaml = await service.request('/openapi.yaml');
    expect(committed).toBe(`${JSON.stringify(generated, null, 2)}\n`);
    // Settings of this machine are not a part of it.
    const env = { HOST: '0.0.0.0', PORT: '4000', BASE_URL: 'http://plants.example.org' };
    const command = runCommand(['dist/cli.js', 'openapi'], env);
    expect(await command.exit()).toBe(0);
    expect(command.stdout).toBe(committed);
    generated.servers![0]!.variables!['base_url']!.default = service.url;
    expect(json.headers.get('content-type')).toContain('application/json');
    expect(json.body).toEqual(generated);
    expect(yaml.headers.get('content-type')).toContain('yaml');
    expect(parseYaml(yaml.body as string)).toEqual(generated);
  });
});

/** The document as clients receive it: JSON has no undefined members. */
function plain(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document)) as unknown;
}
