import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../setup/service/service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
beforeEach(() => service.database.query('TRUNCATE plants'));
afterAll(() => service.close());

// test/properties sends any bodies, and the suites of others. These are the cases that a reader looks for.
describe('POST /plants stores a plant exactly', () => {
  it('responds with 200, name and tag, and never with the id', async () => {
    const response = await service.post('{"id": 1, "name": "Fraxinus é", "tag": "🌿"}');
    expect(response).toMatchObject({ status: 200, body: { name: 'Fraxinus é', tag: '🌿' } });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength('{"name":"Fraxinus é","tag":"🌿"}')),
    });
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'Fraxinus é', tag: '🌿' }]);
  });

  it('responds without a tag if none was sent', async () => {
    const { body } = await service.post('{"id": 1, "name": "Acer rubrum"}');
    expect(body).toEqual({ name: 'Acer rubrum' });
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'Acer rubrum' }]);
  });

  it.each([
    ['-0', '0'],
    ['5.0', '5'],
    ['12.5e1', '125'],
    ['9007199254740993', '9007199254740993'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['9.223372036854775807E+18', '9223372036854775807'],
  ])('keeps the id %s exactly', async (sent, stored) => {
    expect(await service.post(`{"id": ${sent}, "name": "Acer"}`)).toMatchObject({ status: 200 });
    expect(await service.storedPlants()).toEqual([{ id: stored, name: 'Acer' }]);
  });

  const CONTROLS = Array.from({ length: 31 }, (_, i) => String.fromCharCode(i + 1)).join('');

  it.each([
    ['an empty text', ''],
    ['every control character except NUL', CONTROLS],
    ['characters with a meaning in SQL and HTML', `'"; DROP TABLE plants; -- <b>&amp;\\ $1 %s`],
    ['a byte order mark and noncharacters', '\ufeff\uffff\u{10ffff}'],
    ['thirty thousand characters', 'x'.repeat(30_000)],
  ])('keeps %s in name and tag', async (_kind, text) => {
    const plant = { name: text, tag: text };
    expect(await service.post(JSON.stringify({ id: 1, ...plant }))).toMatchObject({ body: plant });
    expect(await service.storedPlants()).toEqual([{ id: '1', ...plant }]);
  });

  it.each([
    ['unknown fields', '{"id":1,"name":"a","color":"red","x":{"id":2,"name":null}}'],
    [
      'fields with names of Object.prototype',
      '{"id":1,"name":"a","__proto__":{"id":7},"constructor":1,"toString":2}',
    ],
    [
      'unknown fields that could not be stored',
      '{"id":1,"name":"a","x":"\\u0000\\ud800","y":1e999}',
    ],
    ['escaped names of fields', '{"\\u0069d":1,"n\\u0061me":"a"}'],
    ['fields in another order, and white space', '\r\n\t{ "name" : "a" ,\n"id" : 1 } '],
  ])('accepts %s', async (_kind, body) => {
    expect(await service.post(body)).toMatchObject({ status: 200, body: { name: 'a' } });
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'a' }]);
  });
});

describe('a body that is JSON but not a NewPlant', () => {
  const INT64 = 'id must be an integer from -9223372036854775808 to 9223372036854775807';

  it.each([
    ['{"id":"5","name":"a"}', `${INT64}, not a string`],
    ['{"id":null,"name":true}', `${INT64}, not null; name must be a string, not a boolean`],
    ['{"id":1.0000000000000000000001,"name":"a"}', `${INT64}, which this number is not`],
    ['{"id":1e999999999,"name":"a"}', `${INT64}, which this number is not`],
    [
      '{"id":1,"name":5,"tag":0.5}',
      'name must be a string, not a number; tag must be a string, not a number',
    ],
    ['{"id":1,"name":"a\\u0000b"}', 'name contains the character U+0000, which cannot be stored'],
    [
      '{"id":1,"name":"a","tag":"\\udc00\\ud83c"}',
      'tag contains half of a surrogate pair, which is not a character',
    ],
    [
      '{"ID":1,"Name":"a","tag":null}',
      'id is missing; name is missing; tag must be a string, not null',
    ],
    ['{"__proto__":{"id":1,"name":"a"}}', 'id is missing; name is missing'],
    // Names for which a library looks, or which it calls.
    ['{"id":1,"name":{"constructor":{"prototype":null}}}', 'name must be a string, not an object'],
    [
      '{"id":{"toJSON":1},"name":{"then":{"__proto__":1}}}',
      `${INT64}, not an object; name must be a string, not an object`,
    ],
    ['{"id":1,"name":"a","tag":[[{"constructor":"a"}]]}', 'tag must be a string, not an array'],
    ['{"constructor":{"name":"NewPlant"},"prototype":1}', 'id is missing; name is missing'],
    ['[{"id":1,"name":"a"}]', 'it must be a JSON object'],
    ['null', 'it must be a JSON object'],
  ])('%s is refused with 40005, and the message names each fault', async (body, reasons) => {
    const response = await service.post(body);
    expect({ status: response.status, body: response.body }).toEqual({
      status: 400,
      body: { error: 40005, message: `The body is not a NewPlant: ${reasons}.` },
    });
    expect(await service.storedPlants()).toEqual([]);
  });
});
