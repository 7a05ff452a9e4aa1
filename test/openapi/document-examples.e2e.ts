import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { describeApp } from '../../src/app.js';
import { ERRORS } from '../../src/errors/errors.js';
import { sendRaw } from '../setup/http/raw-http.js';
import { startIssuer, type Issuer } from '../setup/http/issuer.js';
import { startService, type TestResponse, type TestService } from '../setup/service/service.js';
import { holdClock } from '../setup/time/clock.js';
import { until } from '../setup/time/until.js';

interface DocumentedResponse {
  /** Such as 400. */
  readonly status: string;
  readonly headers: Record<string, unknown>;
  readonly content: Record<string, { examples?: Record<string, { value: unknown }> }>;
}

/** Sent before a request reaches an operation. */
const OF_NO_OPERATION: readonly string[] = [
  'pathNotFound',
  'methodNotAllowed',
  'requestTimeout',
  'expectationFailed',
  'headersTooLarge',
];

/** Not among the requests below: the first is no request, and the others need a fault or a stop of the service. */
const NOT_REQUESTED: readonly string[] = ['badRequest', 'internal', 'shuttingDown'];

const PLANT = '{"id":1649503004888048,"name":"a"}';

describe('the examples of errors in the OpenAPI document', () => {
  let service: TestService;
  let issuer: Issuer;
  /** The error responses of each operation. */
  let documented: DocumentedResponse[][];
  const advance = holdClock();

  beforeAll(async () => {
    issuer = await startIssuer();
    service = await startService({
      OIDC_ISSUER: issuer.url,
      OIDC_AUDIENCE: 'plant-store',
      AUTH_FAILURES_PER_MINUTE: '1',
      MAX_PENDING_REQUESTS: '1',
    });
    const { paths } = await describeApp();
    documented = Object.values(paths)
      .flatMap((operations) => Object.values(operations) as { responses: object }[])
      .map(({ responses }) =>
        Object.entries(responses as Record<string, DocumentedResponse>)
          .filter(([status]) => /^[45]/.test(status))
          .map(([status, response]) => ({ ...response, status })),
      );
  });
  // The wrong tokens of the test before do not count any more.
  beforeEach(() => advance(60_000));
  afterEach(() => {
    issuer.setDown(false);
    service.proxy.restore();
  });
  afterAll(async () => {
    await issuer.close();
    await service.close();
  });

  const withToken = (token: string) => service.post(PLANT, { authorization: `Bearer ${token}` });

  const requests: readonly [string, () => Promise<TestResponse>][] = [
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
        // The keys that it had published at the start are known.
        return withToken(await issuer.sign({}, { kid: 'new' }));
      },
    ],
    ['tokenInvalid', () => withToken('wrong')],
    [
      'tooManyAttempts',
      async () => {
        await withToken('wrong');
        return withToken('wrong');
      },
    ],
    [
      'overloaded',
      async () => {
        // Now the token is in the cache.
        await service.post('{}');
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
      const { code } = ERRORS.find(({ title }) => title === name)!;
      expect(response.body).toMatchObject({ error: code });
      const withExample = documented.flat().filter((it) => name in examplesOf(it));
      expect(withExample).not.toEqual([]);
      for (const described of withExample) {
        // How many seconds are left depends on the time that the test took.
        const { value } = examplesOf(described)[name]!;
        expect(withoutSeconds(response.body)).toEqual(withoutSeconds(value));
        for (const header of Object.keys(described.headers))
          expect(response.headers.get(header)).not.toBeNull();
      }
    },
  );

  it('badRequest is what the service sends', async () => {
    const { body } = await sendRaw(service.port, 'not HTTP\r\n\r\n');
    const examples = documented.flat().flatMap((it) => examplesOf(it)['badRequest'] ?? []);
    expect(examples).not.toEqual([]);
    for (const { value } of examples) expect(JSON.parse(body)).toEqual(value);
  });

  // Otherwise, Swagger UI would invent a message from the schema.
  it('are there for every error response', () => {
    for (const responses of documented) {
      for (const response of responses) expect(examplesOf(response)).not.toEqual({});
    }
  });

  it('stand for every error that an operation sends, and are compared with it above', () => {
    const examples = new Set(documented.flat().flatMap((it) => Object.keys(examplesOf(it))));
    const all = ERRORS.map(({ title }) => title);
    expect([...examples].sort()).toEqual(all.filter((it) => !OF_NO_OPERATION.includes(it)).sort());
    const compared = [...requests.map(([name]) => name), ...NOT_REQUESTED];
    expect([...examples].sort()).toEqual(compared.sort());
  });
});

function examplesOf({ content }: DocumentedResponse): Record<string, { value: unknown }> {
  return content['application/json']!.examples ?? {};
}

const withoutSeconds = (body: unknown): string =>
  JSON.stringify(body).replace(/\d+ seconds/, 'some seconds');
