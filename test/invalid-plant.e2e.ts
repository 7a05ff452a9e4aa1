import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from './setup/service.js';

describe('a body that is JSON but not a NewPlant', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  const RANGE = 'from -9223372036854775808 to 9223372036854775807';

  it.each<[string, string[]]>([
    ['{}', ['id is missing', 'name is missing']],
    ['{"name":"a"}', ['id is missing']],
    ['{"id":1}', ['name is missing']],
    [
      '{"id":null,"name":null}',
      [`id must be an integer ${RANGE}, not null`, 'name must be a string, not null'],
    ],
    ['{"id":"5","name":"a"}', [`id must be an integer ${RANGE}, not a string`]],
    ['{"id":true,"name":"a"}', [`id must be an integer ${RANGE}, not a boolean`]],
    ['{"id":[1],"name":"a"}', [`id must be an integer ${RANGE}, not an array`]],
    ['{"id":{},"name":"a"}', [`id must be an integer ${RANGE}, not an object`]],
    ['{"id":1.5,"name":"a"}', [`id must be an integer ${RANGE}; this number is not`]],
    ['{"id":1.0000000000000000000001,"name":"a"}', ['id must be an integer']],
    ['{"id":9007199254740993.5,"name":"a"}', ['id must be an integer']],
    ['{"id":9223372036854775808,"name":"a"}', ['id must be an integer']],
    ['{"id":-9223372036854775809,"name":"a"}', ['id must be an integer']],
    ['{"id":1e300,"name":"a"}', ['id must be an integer']],
    ['{"id":1e999999999,"name":"a"}', ['id must be an integer']],
    ['{"id":1,"name":5}', ['name must be a string, not a number']],
    ['{"id":1,"name":["a"]}', ['name must be a string, not an array']],
    ['{"id":1,"name":{"length":1}}', ['name must be a string, not an object']],
    ['{"id":1,"name":"a","tag":null}', ['tag must be a string, not null']],
    ['{"id":1,"name":"a","tag":7}', ['tag must be a string, not a number']],
    ['{"id":1,"name":"a","tag":false}', ['tag must be a string, not a boolean']],
    ['{"id":1,"name":"a\\u0000b"}', ['name contains the character U+0000']],
    ['{"id":1,"name":"a","tag":"\\u0000"}', ['tag contains the character U+0000']],
    ['{"id":1,"name":"\\ud800"}', ['name contains half of a surrogate pair']],
    ['{"id":1,"name":"a","tag":"\\udc00\\ud83c"}', ['tag contains half of a surrogate pair']],
    ['{"id":"x","name":1,"tag":null}', ['id must be', 'name must be', 'tag must be']],
    ['{"ID":1,"Name":"a"}', ['id is missing', 'name is missing']],
    ['{"__proto__":{"id":1,"name":"a"}}', ['id is missing', 'name is missing']],
    ['{"id":1,"name":{"constructor":5}}', ['name must be a string, not an object']],
    ['{"id":{"constructor":{"prototype":5}},"name":"a"}', ['id must be']],
    ['{"id":1,"name":{"__proto__":{"then":1}}}', ['name must be a string, not an object']],
    ['{"id":1,"name":[{"constructor":null}],"tag":{"constructor":[]}}', ['name must', 'tag must']],
    ['{"constructor":{"name":"NewPlant"},"prototype":1}', ['id is missing', 'name is missing']],
    ['[]', ['it must be a JSON object']],
    ['[{"id":1,"name":"a"}]', ['it must be a JSON object']],
    ['null', ['it must be a JSON object']],
    ['true', ['it must be a JSON object']],
    ['5', ['it must be a JSON object']],
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
