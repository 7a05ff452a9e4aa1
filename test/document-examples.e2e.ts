import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { describeApp } from '../src/app.js';
import { ErrorCode, statusOf, type ErrorName } from '../src/errors/error-codes.js';
import { sendRaw } from './setup/raw-http.js';
import { startIssuer, type Issuer } from './setup/issuer.js';
import { startService, type TestResponse, type TestService } from './setup/service.js';
import { until } from './setup/until.js';

interface DocumentedResponse {
  readonly headers: Record<string, unknown>;
  readonly content: Record<string, { examples?: Record<string, { value: unknown }> }>;
}

const PLANT = '{"id":1649503004888048,"name":"a"}';

describe('the examples of errors in the OpenAPI document', () => {
  let service: TestService;
  let issuer: Issuer;
  let documented: Record<string, DocumentedResponse>;

  beforeAll(async () => {
    issuer = await startIssuer();
    service = await startService({
      OIDC_ISSUER: issuer.url,
      OIDC_AUDIENCE: 'plant-store',
      AUTH_FAILURES_PER_MINUTE: '1',
      MAX_PENDING_REQUESTS: '1',
    });
    const { paths } = await describeApp();
    documented = paths['/plants']!.post!.responses as Record<string, DocumentedResponse>;
  });
  afterAll(async () => {
    await issuer.close();
    await service.close();
  });

  const withToken = (token: string) => service.post(PLANT, { authorization: `Bearer ${token}` });

  const requests: readonly [ErrorName, () => Promise<TestResponse>][] = [
    ['bodyMissing', () => service.post('')],
    ['unsupportedMediaType', () => service.post('{}', { 'content-type': 'text/plain' })],
    ['bodyTooLarge', () => service.post(' '.repeat(64 * 1024 + 1))],
    ['malformedJson', () => service.post('{"id": 1, "id": 2}')],
    ['bodyInvalid', () => service.post('{"name": 5}')],
    [
      'idTaken',
      async () => {
        await service.post(PLANT);
        return service.post(PLANT.replace('"a"', '"b"'));
      },
    ],
    ['tokenMissing', () => service.request('/plants', { method: 'POST' })],
    [
      'issuerUnavailable',
      async () => {
        issuer.setDown(true);
        return withToken(await issuer.sign());
      },
    ],
    ['tokenInvalid', () => withToken('wrong')],
    ['tooManyAttempts', () => withToken('wrong')],
    [
      'overloaded',
      async () => {
        service.proxy.freeze();
        const pending = service.post(PLANT);
        await until(async () => (await service.metric('plant_store_pending_requests')) === 1);
        const refused = await service.post(PLANT);
        service.proxy.restore();
        await pending;
        return refused;
      },
    ],
    [
      'databaseUnavailable',
      () => {
        service.proxy.cut();
        return service.post(PLANT);
      },
    ],
  ];

  it.each(requests)(
    '%s is what the service sends, with these header fields',
    async (name, send) => {
      const response = await send();
      const status = statusOf(ErrorCode[name]);
      const { headers, content } = documented[status]!;
      expect(response.status).toBe(status);
      // How many seconds are left depends on the time that the test took.
      const { value } = content['application/json']!.examples![name]!;
      expect(withoutSeconds(response.body)).toEqual(withoutSeconds(value));
      for (const header of Object.keys(headers))
        expect(response.headers.get(header)).not.toBeNull();
    },
  );

  it('badRequest is what the service sends', async () => {
    const { value } = documented[400]!.content['application/json']!.examples!['badRequest']!;
    const { body } = await sendRaw(service.port, 'not HTTP\r\n\r\n');
    expect(JSON.parse(body)).toEqual(value);
  });

  // Otherwise, Swagger UI would invent a message from the schema.
  it('are there for every error response, and those of 5XX are those of 500 and 503', () => {
    const examplesOf = (status: string) =>
      documented[status]!.content['application/json']!.examples ?? {};
    for (const status of Object.keys(documented).filter((it) => it !== '200')) {
      expect(Object.keys(examplesOf(status))).not.toEqual([]);
    }
    expect({ ...examplesOf('500'), ...examplesOf('503') }).toMatchObject(examplesOf('5XX'));
  });

  it('stand for every error with the status of a documented response', () => {
    const statuses = Object.keys(documented).filter((it) => /^[45]\d\d$/.test(it));
    const expected = Object.values(ErrorCode).filter((it) =>
      statuses.includes(String(statusOf(it))),
    );
    const examples = statuses.flatMap((status) =>
      Object.keys(documented[status]!.content['application/json']!.examples!),
    );
    const numbers = examples.map((name) => ErrorCode[name as ErrorName]);
    expect(numbers.sort()).toEqual(expected.sort());
  });
});

const withoutSeconds = (body: unknown): string =>
  JSON.stringify(body).replace(/\d+ seconds/, 'some seconds');
