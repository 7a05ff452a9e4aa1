import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ExecutionContext } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { ValidateBy } from 'class-validator';
import { CHUNKED, chunked, LAST_CHUNK } from '../../test/setup/http/raw-http.js';
import {
  requestBytes,
  startReceiver,
  type Exchange,
  type Receiver,
} from '../../test/setup/http/receiver.js';
import {
  bodyInvalid,
  bodyMissing,
  bodyTooLarge,
  malformedJson,
  unsupportedMediaType,
} from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { JsonBody, parseBody } from './json-body.js';
import { BODY_LIMIT_SETTING } from './read-body.js';

class Thing {
  @ValidateBy({ name: 'isInteger', validator: { validate: (value) => typeof value === 'bigint' } })
  id: bigint;
}

class ThingsController {
  create(@JsonBody(Thing) thing: Thing): Thing {
    return thing;
  }
}

/** What Nest passes to the handler. */
function parameterOf({ request, response }: Exchange): object | Promise<object> {
  const parameters = Reflect.getMetadata(ROUTE_ARGS_METADATA, ThingsController, 'create') as object;
  const [{ factory, data }] = Object.values(parameters) as [
    { factory: (data: unknown, context: ExecutionContext) => object; data: unknown },
  ];
  return factory(data, new ExecutionContextHost([request, response]));
}

const MISSING = {
  code: bodyMissing.code,
  message: 'The body is missing. Send JSON, as /docs shows it.',
};
const JSON_TYPE = 'Content-Type: application/json';

describe('the body of a request, as the parameter of a handler', () => {
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver({ [BODY_LIMIT_SETTING]: 30 });
  });
  afterAll(() => receiver.close());

  const send = (lines: string[], body?: string) => receiver.send(requestBytes(lines, body));
  const sendJson = (body: string) => send([JSON_TYPE, `Content-Length: ${body.length}`], body);
  const refusalOf = async (exchange: Exchange): Promise<unknown> => {
    try {
      return await parameterOf(exchange);
    } catch (error) {
      return error;
    }
  };

  it('is a DTO, without a promise if the body has arrived', async () => {
    const thing = parameterOf(await sendJson('{"id":9007199254740993}'));
    expect(thing).toBeInstanceOf(Thing);
    expect(thing).toEqual({ id: 9007199254740993n });
  });

  it('is a DTO when the body arrives later', async () => {
    const exchange = await send([JSON_TYPE, CHUNKED], chunked(['{"id"']));
    const thing = parameterOf(exchange);
    expect(thing).toBeInstanceOf(Promise);
    exchange.client.write(chunked([':1}']) + LAST_CHUNK);
    expect(await thing).toEqual({ id: 1n });
    expect(await thing).toBeInstanceOf(Thing);
  });

  it.each([
    ['announces no body', [], ''],
    ['has the length 0', ['Content-Length: 0'], ''],
    ['has the length 00', ['Content-Length: 00'], ''],
    ['has a type and the length 0', [JSON_TYPE, 'Content-Length: 0'], ''],
    ['has a type and no body', [JSON_TYPE], ''],
    ['has a type and no chunks', [JSON_TYPE, CHUNKED], LAST_CHUNK],
  ])('is missing when the request %s', async (_kind, lines, body) => {
    expect(await refusalOf(await send(lines, body))).toMatchObject(MISSING);
  });

  it.each([
    ['without a type', ['Content-Length: 8'], '{"id":1}'],
    ['without a type, in chunks', [CHUNKED], chunked(['{"id":1}']) + LAST_CHUNK],
    ['of another type', ['Content-Type: text/plain', 'Content-Length: 8'], '{"id":1}'],
    ['of another type and too large', ['Content-Type: text/plain', 'Content-Length: 31'], ''],
    ['of another type and missing', ['Content-Type: text/plain'], ''],
  ])('is refused for its media type %s', async (_kind, lines, body) => {
    expect(await refusalOf(await send(lines, body))).toMatchObject({
      code: unsupportedMediaType.code,
    });
  });

  it.each([
    ['larger than the limit', '{"id":1}'.padEnd(31), bodyTooLarge.code],
    ['larger than the limit and not JSON', '{'.padEnd(31), bodyTooLarge.code],
    ['not JSON', '{"id":1', malformedJson.code],
    ['JSON and no DTO', '{"id":"1"}', bodyInvalid.code],
  ])('is refused when it is %s', async (_kind, body, code) => {
    expect(await refusalOf(await sendJson(body))).toMatchObject({ code });
  });
});

describe('parseBody', () => {
  const parse = (body: string | number[]) => parseBody(Buffer.from(body as string));
  const malformed = (reason: string) =>
    expect.objectContaining({
      code: malformedJson.code,
      message: `The body cannot be read as JSON: ${reason}.`,
    });

  it('reads JSON in UTF-8, with exact integers', () => {
    expect(parse('{"é😀":9007199254740993}')).toEqual({ 'é😀': 9007199254740993n });
  });

  it('refuses an empty body as missing', () => {
    expect(() => parse('')).toThrow(expect.objectContaining(MISSING));
  });

  it.each([
    ['a byte that UTF-8 never contains', [0xff]],
    ['an overlong form', [0xc0, 0xaf]],
    ['half of a surrogate pair', [0xed, 0xa0, 0x80]],
    ['a code point beyond Unicode', [0xf4, 0x90, 0x80, 0x80]],
    ['an incomplete sequence', [0xe2, 0x82]],
  ])('refuses bytes that are not UTF-8, and does not repair them: %s', (_kind, bytes) => {
    expect(() => parse([0x22, ...bytes, 0x22])).toThrow(malformed('it is not valid UTF-8'));
  });

  it('refuses what is not JSON, with the reason', () => {
    expect(() => parse('{"a":1,"a":2}')).toThrow(malformed('the field "a" occurs more than once'));
  });

  it('does not blame the client for a fault of the service, such as an exhausted stack', () => {
    const body = Buffer.from('['.repeat(20) + ']'.repeat(20));
    const errors: unknown[] = [];
    // Calls itself until the stack is full, and parses with a little more of it each time, until it is enough.
    const parseInFullStack = (): unknown => {
      try {
        return parseInFullStack();
      } catch {
        try {
          return parseBody(body);
        } catch (error) {
          errors.push(error);
          throw error;
        }
      }
    };
    expect(parseInFullStack()).toBeInstanceOf(Array);
    expect(errors.length).toBeGreaterThan(0);
    expect(errors.filter((error) => error instanceof ServiceError)).toEqual([]);
  });
});
