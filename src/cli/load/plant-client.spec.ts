import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import { holdTime } from '../../../test/setup/time/held-timers.js';
import { openServer } from '../../../test/setup/http/open-server.js';
import { useResources } from '../../../test/setup/jest/resources.js';
import { CommandError } from '../command-error.js';
import { PlantClient } from './plant-client.js';

const resources = useResources();

const PLANT = '{"id":1,"name":"a"}';
const ERROR = '{"error":50300,"message":"Try again."}';

describe('PlantClient', () => {
  let respond: (response: ServerResponse) => void;
  let client: PlantClient;

  // Once, because undici starts one timer, and uses it for all requests.
  beforeAll(() => holdTime());
  afterAll(() => void jest.useRealTimers());
  beforeEach(async () => {
    const server = createServer((request, response) => {
      void once(request.resume(), 'end').then(() => respond(response));
    });
    client = new PlantClient(new URL((await openServer(resources, server)).url), 'token');
  });
  afterEach(async () => {
    await client.close();
  });

  /** @returns what the client makes of a response */
  const outcomeOf = (status: number, body: string, headers: Record<string, string> = {}) => {
    respond = (response) => response.writeHead(status, headers).end(body);
    return client.send(PLANT);
  };

  /** Sends a plant to a service that is silent. @returns the response that it could send, and the outcome */
  const sendInVain = async () => {
    const arrival = Promise.withResolvers<ServerResponse>();
    respond = arrival.resolve;
    const outcome = client.send(PLANT);
    return { response: await arrival.promise, outcome };
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

  it('after any response, waits for a service that is away', async () => {
    await outcomeOf(503, ERROR);
    respond = (response) => response.destroy();
    expect(await client.send(PLANT)).toEqual({
      kind: 'unknown',
      reason: expect.stringMatching(/^no response \(.+\)$/),
      retryAfter: 1,
    });
  });

  it('throws after a 500 without an Error, which is not from a Plant Store', async () => {
    await expect(outcomeOf(500, '<h1>Broken</h1>')).rejects.toThrow(CommandError);
  });

  it('does not wait for a silent service when it is closed', async () => {
    const { response, outcome } = await sendInVain();
    const closed = client.close();
    response.end(PLANT);
    await expect(outcome).rejects.toThrow('no response');
    await closed;
  });

  it('waits for a response that takes nearly a minute', async () => {
    const { response, outcome } = await sendInVain();
    jest.advanceTimersByTime(59_000);
    response.end(PLANT);
    expect(await outcome).toEqual({ kind: 'stored' });
  });

  it('waits no more than a minute for a response', async () => {
    const { response, outcome } = await sendInVain();
    // The timers of undici end up to a second late.
    jest.advanceTimersByTime(61_000);
    response.end(PLANT);
    await expect(outcome).rejects.toThrow('no response (UND_ERR_HEADERS_TIMEOUT)');
  });

  it('waits no more than a minute for the rest of a response', async () => {
    const { response, outcome } = await sendInVain();
    const begun = new Promise<void>((resolve) => {
      const channel = 'undici:request:headers';
      subscribe(channel, function listener() {
        unsubscribe(channel, listener);
        resolve();
      });
    });
    response.writeHead(200).write(PLANT.slice(0, 5));
    await begun;
    jest.advanceTimersByTime(61_000);
    response.end(PLANT.slice(5));
    await expect(outcome).rejects.toThrow('no response (UND_ERR_BODY_TIMEOUT)');
  });
});
