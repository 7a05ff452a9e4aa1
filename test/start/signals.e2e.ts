import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { end, runService, urlOf, type BuiltService } from '../setup/service/built-service.js';
import { runCommand, type Command, runBefore } from '../setup/process/command.js';
import { beginPlant, openConnection, readResponses } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';

/** Gives the schema and a token. */
let beside: TestService;
let service: BuiltService;
let serial = 0;

beforeAll(async () => {
  beside = await startService();
});
afterAll(() => beside.close());

/** Sends signals while a plant is in flight, and then the rest of its request. @returns the response */
async function postDuring(send: () => Promise<void>) {
  const body = `{"id":${++serial},"name":"a"}`;
  const socket = await openConnection(Number(new URL(service.url).port));
  await beginPlant(socket, beside.token, body);
  await send();
  socket.write(body);
  const [response] = await readResponses(socket, 1);
  socket.destroy();
  return response;
}

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
  let command: Command;

  beforeAll(async () => {
    beside.proxy.cut();
    command = runService({ DATABASE_URL: beside.proxy.url });
    await command.waitFor(/Waiting for the database/);
    command.process.kill('SIGUSR1');
    beside.proxy.restore();
    service = { command, url: await urlOf(command) };
  });
  afterAll(() => end(command));

  it('that waits for the database continues at SIGUSR1, and opens no debugger', () => {
    expect(command.stderr).toBe('');
  });

  it('continues at SIGUSR1, and opens no debugger', async () => {
    const response = await postDuring(async () => {
      for (let i = 0; i < 3; i++) service.command.process.kill('SIGUSR1');
      // The response shows that the signals, which came before, were handled.
      const other = await openConnection(Number(new URL(service.url).port));
      other.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
      await readResponses(other, 1);
      other.destroy();
    });
    expect(response).toMatchObject({ status: 200 });
    expect(service.command.stderr).toBe('');
  });

  it('stops at SIGHUP as it does at SIGTERM, however often it comes', async () => {
    const response = await postDuring(async () => {
      service.command.process.kill('SIGHUP');
      await service.command.waitFor(/The Plant Store stops: it received SIGHUP\./);
      service.command.process.kill('SIGHUP');
    });
    expect(response).toMatchObject({ status: 200, headers: { connection: 'close' } });
    expect(await service.command.exit()).toBe(0);
    expect(await beside.storedPlants()).toContainEqual({ id: String(serial), name: 'a' });
    expect(service.command.stdout).toMatch(/The Plant Store has stopped\."\}\n$/);
    expect(service.command.stderr).toBe('');
  });
});

it('a command that waits for the database continues at SIGUSR1, too', async () => {
  beside.proxy.cut();
  const command = runCommand(['dist/cli.js', 'migrate'], { DATABASE_URL: beside.proxy.url });
  await command.waitFor(/Waiting for the database/);
  const { stderr } = command;
  command.process.kill('SIGUSR1');
  beside.proxy.restore();
  expect(await command.exit()).toBe(0);
  expect(command.stderr).toBe(`${stderr}The schema of the database is up to date.\n`);
});
