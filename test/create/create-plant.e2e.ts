import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../setup/service/service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
beforeEach(() => service.database.query('TRUNCATE plants'));
afterAll(() => service.close());

describe('POST /plants stores a plant exactly', () => {
  it('responds with 200, name and tag, and never with the id', async () => {
    const response = await service.post('{"id": 1, "name": "Acer rubrum", "tag": "Acer"}');
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(response.body).toEqual({ name: 'Acer rubrum', tag: 'Acer' });
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'Acer rubrum', tag: 'Acer' }]);
  });

  it('responds without a tag if none was sent', async () => {
    const response = await service.post('{"id": 1, "name": "Acer rubrum"}');
    expect(response.body).toEqual({ name: 'Acer rubrum' });
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'Acer rubrum' }]);
  });

  it.each([
    ['0', '0'],
    ['-0', '0'],
    ['-1', '-1'],
    ['5.0', '5'],
    ['1e2', '100'],
    ['12.5e1', '125'],
    ['9007199254740993', '9007199254740993'],
    ['9223372036854775807', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['9.223372036854775807E+18', '9223372036854775807'],
  ])('keeps the id %s exactly', async (sent, stored) => {
    const response = await service.post(`{"id": ${sent}, "name": "Acer"}`);
    expect(response.status).toBe(200);
    expect(await service.storedPlants()).toEqual([{ id: stored, name: 'Acer' }]);
  });

  it.each([
    ['an empty text', ''],
    ['white space', ' \t\n '],
    ['letters beyond ASCII', 'Echinacea × purpurea é ñ ß 梅 🌿'],
    ['the same letter, composed and decomposed', '\u00e9 e\u0301'],
    [
      'every control character except NUL',
      String.fromCharCode(
        ...Array(31)
          .keys()
          .map((i) => i + 1),
      ),
    ],
    ['characters with a meaning in SQL and HTML', `'"; DROP TABLE plants; -- <b>&amp;\\ $1 %s`],
    ['a byte order mark and noncharacters', '\ufeff\uffff\u{10ffff}'],
    ['thirty thousand characters', 'x'.repeat(30_000)],
  ])('keeps %s in name and tag', async (_kind, text) => {
    const response = await service.post(JSON.stringify({ id: 1, name: text, tag: text }));
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ name: text, tag: text });
    expect(await service.storedPlants()).toEqual([{ id: '1', name: text, tag: text }]);
  });

  it.each([
    ['unknown fields', '{"id":1,"name":"a","color":"red","x":{"id":2,"name":null}}'],
    [
      'fields with names of Object.prototype',
      '{"id":1,"name":"a","__proto__":{"id":7},"constructor":1,"toString":2}',
    ],
    [
      'unknown members that could not be stored',
      '{"id":1,"name":"a","x":"\\u0000\\ud800","y":1e999}',
    ],
    ['escaped member names', '{"\\u0069d":1,"n\\u0061me":"a"}'],
    ['members in another order, and white space', '\r\n\t{ "name" : "a" ,\n"id" : 1 } '],
    ['access_token in the body', '{"id":1,"name":"a","access_token":"x"}'],
  ])('accepts %s', async (_kind, body) => {
    const response = await service.post(body);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ name: 'a' });
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'a' }]);
  });

  it('accepts a body in many small pieces', async () => {
    const pieces = Buffer.from('{"id": 1, "name": "é"}');
    const response = await service.request('/plants', {
      method: 'POST',
      headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
      body: ReadableStream.from([...pieces].map((byte) => Uint8Array.of(byte))),
      duplex: 'half',
    });
    expect(response.status).toBe(200);
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'é' }]);
  });
});

describe('a body that is JSON but not a NewPlant', () => {
  const RANGE = 'from -9223372036854775808 to 9223372036854775807';

  it.each<[string, string[]]>([
    ['{"id":"5","name":"a"}', [`id must be an integer ${RANGE}, not a string`]],
    ['{"id":1.0000000000000000000001,"name":"a"}', ['id must be an integer']],
    ['{"id":1e300,"name":"a"}', ['id must be an integer']],
    ['{"id":1e999999999,"name":"a"}', ['id must be an integer']],
    ['{"id":1,"name":5}', ['name must be a string, not a number']],
    ['{"id":1,"name":"a\\u0000b"}', ['name contains the character U+0000']],
    ['{"id":1,"name":"\\ud800"}', ['name contains half of a surrogate pair']],
    ['{"id":"x","name":1,"tag":null}', ['id must be', 'name must be', 'tag must be']],
    ['{"ID":1,"Name":"a"}', ['id is missing', 'name is missing']],
    ['{"__proto__":{"id":1,"name":"a"}}', ['id is missing', 'name is missing']],
    ['{"id":1,"name":{"constructor":5}}', ['name must be a string, not an object']],
    ['{"id":{"constructor":{"prototype":5}},"name":"a"}', ['id must be']],
    ['{"id":1,"name":{"__proto__":{"then":1}}}', ['name must be a string, not an object']],
    ['{"id":1,"name":[{"constructor":null}],"tag":{"constructor":[]}}', ['name must', 'tag must']],
    ['{"id":1,"name":{"a":{"constructor":1}}}', ['name must be a string, not an object']],
    ['{"id":{"a":{"constructor":{"then":1}}},"name":"a"}', ['id must be']],
    ['{"id":1,"name":"a","tag":[[{"constructor":"a"}]]}', ['tag must be a string, not an array']],
    ['{"id":1,"name":{"then":{"constructor":1}},"tag":{"toJSON":[]}}', ['name must', 'tag must']],
    ['{"constructor":{"name":"NewPlant"},"prototype":1}', ['id is missing', 'name is missing']],
    ['[{"id":1,"name":"a"}]', ['it must be a JSON object']],
    ['"{}"', ['it must be a JSON object']],
  ])('%s is refused with 40005, and the message names each fault', async (body, reasons) => {
    const response = await service.post(body);
    expect(response.status).toBe(400);
    expect(response.body).toMatchObject({ error: 40005 });
    for (const reason of reasons) {
      expect((response.body as { message: string }).message).toContain(reason);
    }
    expect(await service.storedPlants()).toEqual([]);
  });
});
