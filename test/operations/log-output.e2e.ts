import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { mountSmallDisk, type SmallDisk } from '../setup/service/disk.js';
import { postPlant } from '../setup/http/post-plant.js';
import { runInProcess } from '../setup/service/cli.js';
import {
  COMPILE_CACHE,
  NODE_OPTION,
  ROOT,
  runBefore,
  runCommand,
} from '../setup/service/command.js';
import { makeDataDir } from '../setup/service/data-dir.js';
import { METRICS_SETTING, metricAt } from '../setup/service/metrics.js';
import { findFreePorts } from '../setup/service/ports.js';
import { childrenOf } from '../setup/service/processes.js';
import { openConnection, readResponses } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';
import { isReady } from '../setup/service/is-ready.js';
import { until } from '../setup/time/until.js';

const LOST = 'plant_store_log_entries_lost_total';
const describeOnLinux = process.platform === 'linux' ? describe : describe.skip;
const canMount = await mountSmallDisk('1m');
await canMount?.close();
const describeWithDisk = canMount === undefined ? describe.skip : describe;

/** Gives the schema and a token. */
let beside: TestService;
let service: ChildProcess | undefined;
let url: string;
let serial = 0;

beforeAll(async () => {
  beside = await startService();
});
beforeEach(async () => {
  url = `http://127.0.0.1:${(await findFreePorts(1))[0]}`;
});
afterEach(async () => {
  if (service?.exitCode === null && service.signalCode === null) {
    service.kill('SIGKILL');
    await once(service, 'close');
  }
});
afterAll(() => beside.close());

/**
 * Starts a service whose output the test does not read by itself.
 *
 * @param redirection of the shell
 */
async function start(redirection: string, env: Record<string, string> = {}): Promise<ChildProcess> {
  const args = [
    '-c',
    `exec "$0" "$@" ${redirection}`,
    process.execPath,
    NODE_OPTION,
    join(ROOT, 'dist/main.js'),
  ];
  service = spawn('sh', args, {
    cwd: ROOT,
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      PORT: new URL(url).port,
      DATABASE_URL: beside.database.url,
      ...METRICS_SETTING,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await until(() => service!.exitCode !== null || isReady(url));
  return service;
}

async function stop(): Promise<void> {
  const ended = once(service!, 'exit');
  service!.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
}

async function post(token = beside.token): Promise<number> {
  const { status } = await postPlant(url, token, ++serial);
  return status;
}

/** Sends requests that are logged, so many that no pipe can hold their entries. */
async function fillPipe(): Promise<void> {
  const socket = await openConnection(Number(new URL(url).port));
  const request = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';
  for (let i = 0; i < 200; i++) {
    socket.write(request.repeat(10));
    const responses = await readResponses(socket, 10, 'GET /health/live');
    expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(200));
  }
  socket.destroy();
}

describeOnLinux('a service whose output is on a full disk', () => {
  it('starts with two workers, and stores all plants; the lost entries are counted', async () => {
    await start('> /dev/full 2>&1', { WEB_CONCURRENCY: '2' });
    for (let i = 0; i < 30; i++) expect(await post()).toBe(200);
    await until(async () => (await metricAt(url, LOST))! >= 30);
    await stop();
  });

  it('does so in one process with an embedded database, whose messages are lost, too', async () => {
    const dataDir = await makeDataDir();
    await start('> /dev/full 2>&1', { DATABASE_URL: '', DATA_DIR: dataDir });
    const create = await runInProcess(['token', 'create', 'test'], { DATA_DIR: dataDir });
    for (let i = 0; i < 30; i++) expect(await post(create.stdout.trim())).toBe(200);
    await until(async () => (await metricAt(url, LOST))! >= 30);
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
    expect(await post()).toBe(200);
    await disk.fill();
    await until(async () => {
      expect(await post()).toBe(200);
      return (await metricAt(url, LOST))! > 0;
    });
    await disk.free();
    const lost = await metricAt(url, LOST);
    await until(async () => {
      expect(await post()).toBe(200);
      return (await readFile(file, 'utf8')).endsWith('"msg":"request"}\n');
    });
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
    const { stdout } = await start('');
    await fillPipe();
    expect(await post()).toBe(200);
    expect(await metricAt(url, LOST)).toBe(0);
    let filled = 0;
    for await (const line of createInterface(stdout!)) {
      if ((JSON.parse(line) as { route?: string }).route === '/health/live') filled++;
      if (filled === 2000) break;
    }
    expect(await metricAt(url, LOST)).toBe(0);
    stdout!.destroy();
    for (let i = 0; i < 30; i++) expect(await post()).toBe(200);
    await until(async () => {
      expect(await post()).toBe(200);
      return (await metricAt(url, LOST))! > 0;
    });
    await stop();
  });

  describeOnLinux('with workers', () => {
    it('stores plants while a worker is replaced', async () => {
      const flag = join(await makeDataDir(), 'stop');
      // Stops the replacement of a worker at its start, before it has opened its output.
      const env = runBefore(`
        import { existsSync } from 'node:fs';
        if (existsSync(${JSON.stringify(flag)})) process.kill(process.pid, 'SIGSTOP');`);
      const { pid } = await start('', { ...env, WEB_CONCURRENCY: '2' });
      await until(async () => (await metricAt(url, 'plant_store_workers')) === 2);
      const workers = await childrenOf(pid!);
      await fillPipe();
      await writeFile(flag, '');
      process.kill(workers[0]!, 'SIGKILL');
      const isReplacement = (child: number) => !workers.includes(child);
      let stopped: number | undefined;
      await until(async () => {
        stopped = (await childrenOf(pid!)).find(isReplacement);
        return stopped !== undefined && (await stateOf(stopped)) === 'T';
      });
      try {
        // Each entry fills a tenth of the buffer of the log.
        for (let i = 0; i < 30; i++) expect(await post()).toBe(200);
      } finally {
        process.kill(stopped!, 'SIGCONT');
      }
      service!.stdout!.resume();
      await stop();
    });

    it('stores plants however often a worker is replaced', async () => {
      const { pid } = await start('', { WEB_CONCURRENCY: '2' });
      await until(async () => (await metricAt(url, 'plant_store_workers')) === 2);
      await fillPipe();
      for (let round = 0; round < 5; round++) {
        const [oldest, newest] = (await childrenOf(pid!)).sort((a, b) => a - b);
        process.kill(newest!, 'SIGKILL');
        await until(async () => {
          expect(await post()).toBe(200);
          const children = await childrenOf(pid!);
          return children.length === 2 && children.includes(oldest!) && !children.includes(newest!);
        });
        await until(async () => (await metricAt(url, 'plant_store_workers')) === 2);
      }
      service!.stdout!.resume();
      await stop();
    });

    it('shows why a worker crashed', async () => {
      const env = runBefore(`
        import { isMainThread } from 'node:worker_threads';
        if (isMainThread && process.argv[1].endsWith('worker.js')) throw new Error('the moon is full');`);
      const crashed = runCommand(['dist/main.js'], {
        ...env,
        PORT: '0',
        DATABASE_URL: beside.database.url,
        WEB_CONCURRENCY: '2',
      });
      expect(await crashed.exit()).toBe(1);
      expect(crashed.stderr).toContain('Error: the moon is full');
    });
  });
});

/** The state of a process on Linux, such as T for stopped. */
async function stateOf(pid: number): Promise<string | undefined> {
  return /\) (\w)/.exec(await readFile(`/proc/${pid}/stat`, 'utf8'))?.[1];
}
