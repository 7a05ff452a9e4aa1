import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { importWithHeldWaits } from '../../test/setup/held-waits.js';
import { readConfig } from '../config/config.js';
import { StartError } from '../errors/start-error.js';
import { DataDirInUseError, lockDataDir } from './embedded/data-dir.js';
import { socketIn } from './embedded/socket-dir.js';

const { joinDatabase, openDatabase } = await importWithHeldWaits(
  () => import('./open-database.js'),
);

it.each([openDatabase, joinDatabase])(
  'a server that is set is used as it is (%p)',
  async (open) => {
    const config = { ...readConfig({}).database, url: 'postgres://db/plants' };
    const database = await open(config);
    expect(database.config).toEqual(config);
    await expect(database.close()).resolves.toBeUndefined();
  },
);

// That the embedded Postgres starts, and in which process, is a matter of end-to-end tests: it has a thread.
describe('a data folder that another process has open', () => {
  let resources: AsyncDisposableStack;
  let dataDir: string;
  let lock: Disposable;

  beforeEach(async () => {
    resources = new AsyncDisposableStack();
    dataDir = await mkdtemp(join(tmpdir(), 'plant-store-test-'));
    resources.defer(() => rm(dataDir, { recursive: true }));
    lock = resources.use(lockDataDir(dataDir));
  });
  afterEach(() => resources.disposeAsync());

  const config = (startTimeout = 30_000) => ({
    ...readConfig({}).database,
    dataDir,
    startTimeout,
  });

  /** The other process is a service. */
  async function serve(): Promise<void> {
    const server = createServer();
    await once(server.listen(socketIn(dataDir)), 'listening');
    resources.defer(() => void server.close());
  }

  it('is joined by a command if a service runs on it', async () => {
    await serve();
    const database = await joinDatabase(config());
    expect(database.config).toEqual({
      ...config(),
      url: `postgres://postgres@/postgres?host=${encodeURIComponent(dataDir)}`,
      isEmbedded: true,
    });
    await database.close();
  });

  it('is refused at once to a second service', async () => {
    await serve();
    const before = performance.now();
    await expect(openDatabase(config())).rejects.toBeInstanceOf(DataDirInUseError);
    expect(performance.now()).toBe(before);
  });

  it.each([openDatabase, joinDatabase])(
    'is waited for until the time is over, while a command has it (%p)',
    async (open) => {
      const before = performance.now();
      await expect(open(config(1000))).rejects.toBeInstanceOf(DataDirInUseError);
      expect(performance.now() - before).toBe(1100);
    },
  );

  it('is tried again as soon as the command has ended', async () => {
    const opened = openDatabase(config(0));
    lock[Symbol.dispose]();
    // The start fails in another way: the thread of Postgres is a built file, which no unit test needs.
    await expect(opened).rejects.not.toBeInstanceOf(DataDirInUseError);
  });
});

it('a data folder that cannot be used is refused without a wait', async () => {
  const before = performance.now();
  const opened = openDatabase({ ...readConfig({}).database, dataDir: '/dev/null/data' });
  await expect(opened).rejects.toBeInstanceOf(StartError);
  expect(performance.now()).toBe(before);
});
