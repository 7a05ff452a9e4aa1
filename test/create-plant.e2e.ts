import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from './setup/service.js';

describe('POST /plants stores a plant exactly', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  beforeEach(() => service.database.query('TRUNCATE plants'));
  afterAll(() => service.close());

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
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'Acer rubrum', tag: null }]);
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
    expect(await service.storedPlants()).toEqual([{ id: stored, name: 'Acer', tag: null }]);
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
    ['unknown members', '{"id":1,"name":"a","color":"red","x":{"id":2,"name":null}}'],
    [
      'members with names of Object.prototype',
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
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'a', tag: null }]);
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
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'é', tag: null }]);
  });
});
