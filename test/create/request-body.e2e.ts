import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { ServiceError } from '../../src/errors/service-error.js';
import type * as ExactJson from '../../src/http/exact-json.js';
import type * as MediaType from '../../src/http/media-type.js';
import {
  CHUNKED,
  chunked,
  LAST_CHUNK,
  openConnection,
  plantHead,
  readResponses,
  sendRaw,
} from '../setup/http/raw-http.js';
import { useResources } from '../setup/jest/resources.js';
import { startService, type TestService } from '../setup/service/service.js';
import { runInThread } from '../setup/process/thread.js';

const PLANT = '{"id":1,"name":"a"}';
const JSON_TYPE = 'Content-Type: application/json';
const CHUNKED_JSON = [JSON_TYPE, CHUNKED];

describe('the request body', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ BODY_LIMIT: '1000' });
  });
  beforeEach(() => service.database.query('TRUNCATE plants'));
  afterAll(() => service.close());

  async function expectRefused(response: { status: number; body: unknown }, error: number) {
    const body: unknown =
      typeof response.body === 'string' ? JSON.parse(response.body) : response.body;
    expect({ status: response.status, body }).toEqual({
      status: 400,
      body: { error, message: expect.any(String) },
    });
    expect(await service.storedPlants()).toEqual([]);
  }

  const head = (lines: string[], token = service.token) => plantHead(token, lines);

  it.each([
    ['neither length nor type', 40001, [], ''],
    ['the length 00', 40001, ['Content-Length: 00'], ''],
    ['a type and the length 0', 40001, [JSON_TYPE, 'Content-Length: 0'], ''],
    ['a type and no chunks', 40001, [JSON_TYPE, CHUNKED], LAST_CHUNK],
    ['another type', 40002, ['Content-Type: text/plain', 'Content-Length: 0'], ''],
  ])('missing, with %s, is %d', async (_kind, error, lines, body) => {
    await expectRefused(await sendRaw(service.port, head(lines) + body), error);
  });

  // src/http/media-type.spec.ts has the forms of the header fields.
  it.each([
    ['of another type', ['Content-Type: text/plain', `Content-Length: ${PLANT.length}`], PLANT],
    ['without a type', [`Content-Length: ${PLANT.length}`], PLANT],
    ['without a type, in chunks', [CHUNKED], chunked([PLANT]) + LAST_CHUNK],
    [
      'with a content encoding',
      [JSON_TYPE, 'Content-Encoding: gzip', `Content-Length: ${PLANT.length}`],
      PLANT,
    ],
  ])('%s is 40002', async (_kind, lines, body) => {
    await expectRefused(await sendRaw(service.port, head(lines) + body), 40002);
  });

  const padded = (size: number) => PLANT.padEnd(size, ' ');

  it('may have the size of the limit; one byte more is 40003, which names the limit', async () => {
    expect(await service.post(padded(1000))).toMatchObject({ status: 200 });
    expect(await service.post(padded(1001))).toMatchObject({
      status: 400,
      body: { error: 40003, message: 'The body is larger than 1000 bytes.' },
    });
  });

  it('with a Content-Length beyond the limit is 40003 before any of it is sent', async () => {
    const lines = [JSON_TYPE, 'Content-Length: 1000000000'];
    await expectRefused(await sendRaw(service.port, head(lines)), 40003);
    // Without 100 Continue before it.
    const asks = [...lines, 'Expect: 100-continue'];
    await expectRefused(await sendRaw(service.port, head(asks)), 40003);
  });

  it('with chunks beyond the limit is 40003 before its end', async () => {
    const chunk = `3e9\r\n${padded(1001)}\r\n`;
    await expectRefused(await sendRaw(service.port, head(CHUNKED_JSON) + chunk), 40003);
  });

  it('may begin with a byte order mark, whose three bytes count for the limit', async () => {
    expect(await service.post(`\uFEFF${padded(997)}`)).toMatchObject({
      status: 200,
      body: { name: 'a' },
    });
    await service.database.query('TRUNCATE plants');
    await expectRefused(await service.post(`\uFEFF${padded(998)}`), 40003);
    await expectRefused(await service.post(`\uFEFF\uFEFF${PLANT}`), 40004);
    await expectRefused(await service.post(`${PLANT}\uFEFF`), 40004);
  });

  const invalidUtf8 = Buffer.from(PLANT);
  invalidUtf8[PLANT.length - 3] = 0xff;

  it.each([
    ['a syntax error', '{"id":1,"name":}', /: Unexpected token '}'/],
    ['a repeated field', '{"id":1,"id":2,"name":"a"}', /: the field "id" occurs more than once\.$/],
    ['a byte that UTF-8 never contains', invalidUtf8, /: it is not valid UTF-8\.$/],
  ])('with %s is 40004, which says what is wrong', async (_kind, body, message) => {
    expect(await service.post(body)).toMatchObject({
      status: 400,
      body: { error: 40004, message: expect.stringMatching(message) },
    });
    expect(await service.storedPlants()).toEqual([]);
  });

  describe('in pieces that arrive while', () => {
    const request = (pieces: string[], token?: string) =>
      head(CHUNKED_JSON, token) + chunked(pieces) + LAST_CHUNK;

    const refused = (error: number) => ({
      status: 400,
      body: expect.stringContaining(`"error":${error}`) as unknown,
    });

    const CASES: [string, string[], object][] = [
      ['is joined', ['{"id":9', ',"name":"z"', '}'], { status: 200 }],
      ['is read to its end', ['{"id":9,"name":"z"}', 'GARBAGE'], refused(40004)],
      ['is measured to its end', ['{"id":9,"name":"z"}', ' '.repeat(990)], refused(40003)],
    ];

    it.each(CASES)('its token is looked up, %s', async (_case, pieces, expected) => {
      // A token that is not in the cache: the pieces arrive while it is looked up.
      const { token } = await service.app.get(AccessTokensService).create('test');
      expect(await sendRaw(service.port, request(pieces, token))).toMatchObject(expected);
    });

    it.each(CASES)('another request is handled, %s', async (_case, pieces, expected) => {
      const socket = await openConnection(service.port);
      socket.write(request([PLANT]) + request(pieces));
      expect(await readResponses(socket, 2)).toMatchObject([{ status: 200 }, expected]);
      socket.destroy();
    });
  });
});

describe('reading takes linear time, for', () => {
  const resources = useResources();

  it('a media type with a quoted value that does not end', async () => {
    const refusal = await runInThread(
      resources,
      'http/media-type.js',
      ({ checkMediaType }: typeof MediaType, type: string) => {
        try {
          return checkMediaType({ headers: { 'content-type': type } });
        } catch (error) {
          return (error as ServiceError).code;
        }
      },
      `application/json; a="${'b'.repeat(10_000)}`,
    );
    expect(refusal).toBe(40002);
  });

  it('an object with many members', async () => {
    const count = await runInThread(
      resources,
      'http/exact-json.js',
      ({ parseExactJson }: typeof ExactJson, text: string) => {
        return Object.keys(parseExactJson(text) as object).length;
      },
      `{${Array.from({ length: 500_000 }, (_, i) => `"${i}a":0`).join()}}`,
    );
    expect(count).toBe(500_000);
  });
});

describe('a large body', () => {
  const LIMIT = 1024 * 1024;
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ BODY_LIMIT: '1mb' });
  });
  beforeEach(() => service.database.query('TRUNCATE plants'));
  afterAll(() => service.close());

  /** A plant whose name is as long as the limit allows, and ends with `end`. */
  const longText = (end = '') => `{"id":1,"name":"${'x'.repeat(LIMIT - 18 - end.length)}${end}"}`;

  it('is stored exactly if it has the size of the limit', async () => {
    const body = longText();
    expect(body).toHaveLength(LIMIT);
    const { name } = JSON.parse(body) as { name: string };
    expect(await service.post(body)).toMatchObject({ status: 200, body: { name } });
    expect(await service.storedPlants()).toEqual([{ id: '1', name }]);
    expect(await service.post(`${body} `)).toMatchObject({ body: { error: 40003 } });
  });

  it.each([
    ['NUL', '\\u0000'],
    ['half of a surrogate pair', '\\ud83c'],
  ])('is 40005 with %s at the end of a text', async (_kind, end) => {
    expect(await service.post(longText(end))).toMatchObject({ body: { error: 40005 } });
    expect(await service.storedPlants()).toEqual([]);
  });

  it('may have ten thousand members, none of them twice', async () => {
    const others = Array.from({ length: 10_000 }, (_, i) => `"x${i}":1`).join();
    const plant = `{"id":1,${others},"name":"a"`;
    expect(await service.post(`${plant}}`)).toMatchObject({ status: 200, body: { name: 'a' } });
    for (const repeated of ['"id":1', '"x9999":1']) {
      expect(await service.post(`${plant},${repeated}}`)).toMatchObject({ body: { error: 40004 } });
    }
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'a' }]);
  });

  it('is 40004 if it is deeply nested, and the service still works', async () => {
    const bomb = `{"id":1,"name":"a","x":${'['.repeat(30_000)}${']'.repeat(30_000)}}`;
    expect(await service.post(bomb)).toMatchObject({ status: 400, body: { error: 40004 } });
    expect((await service.post(PLANT)).status).toBe(200);
  });
});
