// Whatever happens to the log, plants are stored. What is written of it, and when, is in src/logging/logger.spec.ts.

import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { makeDataDir, removeDataDir } from '../setup/service/data-dir.js';
import { openTestDatabase } from '../setup/database/database.js';
import { postPlant } from '../setup/http/post-plant.js';
import { openConnection, readResponses } from '../setup/http/raw-http.js';
import { end, stopUnderLoad, type BuiltService } from '../setup/service/built-service.js';
import { runInProcess } from '../setup/service/cli.js';
import { NODE, ROOT, runProgram } from '../setup/process/command.js';
import { useResources } from '../setup/jest/resources.js';
import { isReady } from '../setup/service/is-ready.js';
import { METRICS_SETTING, metricAt } from '../setup/service/metrics.js';
import { findFreePorts } from '../setup/process/ports.js';
import { until, within } from '../setup/time/until.js';

/** The requests that fill a pipe: 64 clients, each with as many as the service reads at once. */
const CLIENTS = 64;
const PIPELINED = 16;

const itOnLinux = process.platform === 'linux' ? it : it.skip;

const resources = useResources();

let serial = 0;

/**
 * Starts a service whose standard output nobody reads before it is resumed.
 *
 * @param redirection of the shell
 */
async function start(redirection: string, settings: Record<string, string>): Promise<BuiltService> {
  const [port] = await findFreePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const program = [...NODE, join(ROOT, 'dist/main.js')];
  const command = runProgram('sh', ['-c', `exec "$0" "$@" ${redirection}`, ...program], {
    PORT: String(port),
    ...METRICS_SETTING,
    ...settings,
  });
  command.process.stdout.pause();
  resources.defer(() => {
    // The end of a service is also the end of its output.
    command.process.stdout.resume();
    return end(command);
  });
  const hasEnded = () => command.process.exitCode !== null;
  await until(async () => hasEnded() || isReady(url));
  if (hasEnded()) throw new Error(`The service ended: ${command.stderr}`);
  return { command, url };
}

async function createToken(settings: Record<string, string>): Promise<string> {
  return (await runInProcess(['token', 'create', 'test'], settings)).stdout.trim();
}

/** A log that blocks the service would block this, too. */
async function post({ url }: BuiltService, token: string): Promise<void> {
  const { status } = await within('A plant gets a response.', postPlant(url, token, ++serial));
  expect(status).toBe(200);
}

async function lostEntries({ url }: BuiltService): Promise<number> {
  const metric = metricAt(url, 'plant_store_log_entries_lost_total');
  return (await within('There are metrics.', metric))!;
}

/** Stores plants until entries about them are lost, and counted. */
function postUntilEntriesAreLost(service: BuiltService, token: string): Promise<void> {
  const isCounted = async () => {
    await post(service, token);
    return (await lostEntries(service)) > 0;
  };
  return within('Entries are lost.', until(isCounted));
}

itOnLinux(
  'a service whose output is on a full disk starts, also with an embedded database, stores plants, counts the lost entries and stops',
  async () => {
    const dataDir = await makeDataDir();
    resources.defer(() => removeDataDir(dataDir));
    const settings = { DATA_DIR: dataDir };
    const service = await start('> /dev/full 2>&1', settings);
    await postUntilEntriesAreLost(service, await createToken(settings));
    const lost = await lostEntries(service);
    // Once: between the two looks, only the entry about the first one was lost.
    expect((await lostEntries(service)) - lost).toBeLessThan(10);
    await within('The service has stopped.', stopUnderLoad(service));
  },
);

it('a service whose output nobody reads stores plants meanwhile, loses nothing if a reader comes in time, and counts the lost entries when that has ended', async () => {
  const database = await openTestDatabase();
  resources.defer(() => database.close());
  const settings = { DATABASE_URL: database.url };
  const token = await createToken(settings);
  const service = await start('', settings);
  await fillPipe(service);
  await post(service, token);
  expect(await lostEntries(service)).toBe(0);
  const { stdout } = service.command.process;
  stdout.resume();
  const probes = () =>
    service.command.stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { route?: string })
      .filter(({ route }) => route === '/health/live');
  const all = CLIENTS * PIPELINED;
  const isRead = until(() => probes().length >= all);
  await within('All entries are read.', isRead);
  expect(await lostEntries(service)).toBe(0);
  expect(probes()).toHaveLength(all);
  stdout.destroy();
  await postUntilEntriesAreLost(service, token);
  await within('The service has stopped.', stopUnderLoad(service));
});

/** Sends requests that are logged, so many that no pipe can hold their entries. */
async function fillPipe({ url }: BuiltService): Promise<void> {
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
