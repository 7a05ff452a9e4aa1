import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { closeServers, openServer } from '../../../test/setup/open-server.js';
import { CommandError } from '../command-error.js';
import { PlantClient } from './plant-client.js';

const ERROR = '{"error":50300,"message":"Try again."}';

describe('PlantClient', () => {
  let respond: (response: ServerResponse) => void;
  let client: PlantClient;

  beforeEach(async () => {
    const server = createServer((request, response) => {
      void once(request.resume(), 'end').then(() => respond(response));
    });
    client = new PlantClient(new URL(`http://127.0.0.1:${await openServer(server)}`), 'token');
  });
  afterEach(async () => {
    await client.close();
    await closeServers();
  });

  /** @returns what the client makes of a response */
  const outcomeOf = (status: number, body: string, headers: Record<string, string> = {}) => {
    respond = (response) => response.writeHead(status, headers).end(body);
    return client.send('{"id":1,"name":"a"}');
  };

  it.each([408, 429, 502, 503, 504])('has a plant sent again after %d', async (status) => {
    expect(await outcomeOf(status, '<h1>Try again</h1>')).toEqual({
      kind: 'unknown',
      reason: `${status}`,
      retryAfter: 1,
    });
  });

  it.each([
    ['7', 7],
    ['120', 120],
    ['0', 1],
    ['Fri, 31 Dec 1999 23:59:59 GMT', 1],
  ])('with "Retry-After: %s", has a plant sent again after %d s', async (retryAfter, seconds) => {
    expect(await outcomeOf(503, ERROR, { 'retry-after': retryAfter })).toEqual({
      kind: 'unknown',
      reason: '50300: Try again.',
      retryAfter: seconds,
    });
  });

  it.each([400, 500])(
    'reports a plant as refused after %d with an Error, so that it is listed',
    async (status) => {
      expect(await outcomeOf(status, '{"error":12345,"message":"The reason."}')).toEqual({
        kind: 'refused',
        error: 12345,
        message: 'The reason.',
      });
    },
  );

  it('throws after a 500 without an Error, which is not from a Plant Store', async () => {
    await expect(outcomeOf(500, '<h1>Broken</h1>')).rejects.toThrow(CommandError);
  });
});
