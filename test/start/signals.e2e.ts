import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { end, runService, urlOf } from '../setup/service/built-service.js';
import { runBefore, type Command } from '../setup/process/command.js';
import { beginPlant, openConnection, readResponses } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';

/** Gives the schema and a token. */
let beside: TestService;

beforeAll(async () => {
  beside = await startService();
});
afterAll(() => beside.close());

it('a service handles SIGTERM before its modules are loaded: the first process of a container would ignore it', async () => {
  const early = runService({
    DATABASE_URL: beside.proxy.url,
    // The last signal that gets a listener. After that, the modules are never loaded.
    ...runBefore(`
      import { register } from 'node:module';
      const load = "export const load = (url, context, next) => url.endsWith('/start.js') ? new Promise(() => {}) : next(url, context)";
      register('data:text/javascript,' + encodeURIComponent(load));
      process.on('newListener', (event) => {
        if (event === 'SIGHUP') process.nextTick(() => process.kill(process.pid, 'SIGTERM'));
      });
    `),
  });
  expect(await early.exit()).toBe(0);
});

describe('a service', () => {
  let service: Command;

  const start = () => {
    service = runService({ DATABASE_URL: beside.proxy.url });
  };
  afterEach(async () => {
    beside.proxy.restore();
    await end(service);
  });

  /** Begins a request, and returns a function that completes it and returns the response. */
  async function begin(id: number) {
    const body = `{"id":${id},"name":"a"}`;
    const socket = await openConnection(Number(new URL(await urlOf(service)).port));
    socket.on('error', () => undefined);
    await beginPlant(socket, beside.token, body);
    return async () => {
      socket.write(body);
      const [response] = await readResponses(socket, 1);
      socket.destroy();
      return response;
    };
  }

  it('continues at SIGUSR1, also while it waits for the database, and opens no debugger', async () => {
    beside.proxy.cut();
    start();
    await service.waitFor(/Waiting for the database/);
    service.process.kill('SIGUSR1');
    beside.proxy.restore();
    const complete = await begin(1);
    service.process.kill('SIGUSR1');
    expect(await complete()).toMatchObject({ status: 200 });
    expect(service.stderr).toBe('');
  });

  it('stops gracefully at SIGHUP, however often it comes, and at once at another signal', async () => {
    start();
    const complete = await begin(2);
    await begin(3);
    service.process.kill('SIGHUP');
    await service.waitFor(/The Plant Store stops: it received SIGHUP\./);
    service.process.kill('SIGHUP');
    expect(await complete()).toMatchObject({ status: 200, headers: { connection: 'close' } });
    service.process.kill('SIGINT');
    expect(await service.exit()).toBe(1);
    expect(service.stdout).toMatch(
      /ends without waiting for requests: it received a second signal, SIGINT\."\}\n$/,
    );
    expect(service.stderr).toBe('');
    expect(await beside.storedPlants()).toContainEqual({ id: '2', name: 'a' });
  });
});
