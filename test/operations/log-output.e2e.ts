import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { makeDataDir, removeDataDir } from '../setup/service/data-dir.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { postPlant } from '../setup/http/post-plant.js';
import { openConnection, readResponses } from '../setup/http/raw-http.js';
import { end, stopUnderLoad } from '../setup/service/built-service.js';
import { runInProcess } from '../setup/service/cli.js';
import { NODE, ROOT, runProgram, type Command } from '../setup/process/command.js';
import { useResources } from '../setup/jest/resources.js';
import { canMountDisk, mountSmallDisk, type SmallDisk } from '../setup/process/disk.js';
import { isReady } from '../setup/service/is-ready.js';
import { METRICS_SETTING, metricAt } from '../setup/service/metrics.js';
import { findFreePorts } from '../setup/process/ports.js';
import { until, within } from '../setup/time/until.js';

const LOST = 'plant_store_log_entries_lost_total';
const describeOnLinux = process.platform === 'linux' ? describe : describe.skip;
const describeWithDisk = (await canMountDisk()) ? describe : describe.skip;

/** The requests that fill a pipe: 64 clients, each with as many as the service reads at once. */
const CLIENTS = 64;
const PIPELINED = 16;

let database: TestDatabase;
let token: string;
let service: Command;
let url: string;
let serial = 0;

beforeAll(async () => {
  database = await openTestDatabase();
  token = await createToken({ DATABASE_URL: database.url });
});
afterEach(async () => {
  // The end of a service is also the end of its output.
  service.process.stdout.resume();
  await end(service);
});

// Declared after the hook above, so that the folders are removed when the service has ended.
const resources = useResources();
afterAll(() => database.close());

async function createToken(env: Record<string, string>): Promise<string> {
  return (await runInProcess(['token', 'create', 'test'], env)).stdout.trim();
}

/**
 * Starts a service whose standard output the test does not read before it resumes it.
 *
 * @param redirection of the shell
 */
async function start(redirection: string, env: Record<string, string> = {}): Promise<void> {
  const [port] = await findFreePorts(1);
  url = `http://127.0.0.1:${port}`;
  const program = [...NODE, join(ROOT, 'dist/main.js')];
  service = runProgram('sh', ['-c', `exec "$0" "$@" ${redirection}`, ...program], {
    PORT: String(port),
    DATABASE_URL: database.url,
    ...METRICS_SETTING,
    ...env,
  });
  service.process.stdout.pause();
  const hasEnded = () => service.process.exitCode !== null;
  await within(
    'The service is ready.',
    until(async () => hasEnded() || isReady(url)),
  );
  if (hasEnded()) throw new Error(`The service ended: ${service.stderr}`);
}

function stop(): Promise<void> {
  service.process.stdout.resume();
  return within('The service has stopped.', stopUnderLoad({ command: service, url }));
}

async function post(bearer = token): Promise<void> {
  const { status } = await within('A plant gets a response.', postPlant(url, bearer, ++serial));
  expect(status).toBe(200);
}

/** Each entry fills a tenth of the buffer of the log, so these are written several times, if that is possible. */
async function postMany(bearer?: string): Promise<void> {
  for (let i = 0; i < 30; i++) await post(bearer);
}

async function lostEntries(): Promise<number> {
  return (await within('There are metrics.', metricAt(url, LOST)))!;
}

/** Sends requests that are logged, so many that no pipe can hold their entries. */
async function fillPipe(): Promise<void> {
  const head = `GET /health/live HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${'a'.repeat(128)}\r\n\r\n`;
  const sendAll = async () => {
    const socket = await openConnection(Number(new URL(url).port));
    socket.write(head.repeat(PIPELINED));
    const responses = await readResponses(socket, PIPELINED);
    expect(responses.map(({ status }) => status)).toEqual(Array(PIPELINED).fill(200));
    socket.destroy();
  };
  await within('The pipe is full.', Promise.all(Array.from({ length: CLIENTS }, sendAll)));
}

describeOnLinux('a service whose output is on a full disk', () => {
  const expectStoredAndCounted = async (bearer?: string) => {
    await postMany(bearer);
    const isCounted = async () => (await lostEntries()) >= 30;
    await within('The lost entries are counted.', until(isCounted));
  };

  it('starts, and stores all plants; the lost entries are counted', async () => {
    await start('> /dev/full 2>&1');
    await expectStoredAndCounted();
    const lost = await lostEntries();
    // Once: between the two looks, only the entry about the first one was lost.
    expect((await lostEntries()) - lost).toBeLessThan(10);
    await stop();
  });

  it('does so with an embedded database, whose messages are lost, too', async () => {
    const dataDir = await makeDataDir();
    resources.defer(() => removeDataDir(dataDir));
    const env = { DATABASE_URL: '', DATA_DIR: dataDir };
    await start('> /dev/full 2>&1', env);
    await expectStoredAndCounted(await createToken(env));
    await stop();
  });
});

describeWithDisk('a service whose log fills its disk', () => {
  let disk: SmallDisk;

  beforeAll(async () => {
    disk = (await mountSmallDisk('1m'))!;
  });
  afterAll(() => disk.close());

  it('stores all plants, and writes whole entries again when there is room', async () => {
    const file = join(disk.folder, 'log');
    await start(`>> ${file}`);
    await post();
    await disk.fill();
    const losesEntries = async () => {
      await post();
      return (await lostEntries()) > 0;
    };
    await within('Entries are lost.', until(losesEntries));
    await disk.free();
    const lost = await lostEntries();
    const writesAgain = async () => {
      await post();
      return (await readFile(file, 'utf8')).endsWith('"msg":"request"}\n');
    };
    await within('The log continues.', until(writesAgain));
    await stop();
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg).at(-1)).toBe(
      'The Plant Store has stopped.',
    );
    expect(lost).toBeGreaterThan(0);
  });
});

describe('a service whose output nobody reads', () => {
  it('stores plants meanwhile, loses nothing if a reader comes in time, and counts the lost entries when that has ended', async () => {
    await start('');
    await fillPipe();
    await post();
    expect(await lostEntries()).toBe(0);
    const { stdout } = service.process;
    stdout.resume();
    const probes = () =>
      service.stdout
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { route?: string })
        .filter(({ route }) => route === '/health/live');
    const all = CLIENTS * PIPELINED;
    await within(
      'All entries are read.',
      until(() => probes().length >= all),
    );
    expect(await lostEntries()).toBe(0);
    expect(probes()).toHaveLength(all);
    stdout.destroy();
    await postMany();
    const losesEntries = async () => {
      await post();
      return (await lostEntries()) > 0;
    };
    await within('Entries are lost.', until(losesEntries));
    await stop();
  });
});
