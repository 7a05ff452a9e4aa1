import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { readConfig } from '../src/config/config.js';
import { prepareDatabase } from '../src/database/prepare-database.js';
import { attempt, endAttempts } from './setup/attempts.js';
import { startDatabaseProxy, type DatabaseProxy } from './setup/database-proxy.js';
import { isOnServer, openTestDatabase, type TestDatabase } from './setup/database.js';
import { until } from './setup/until.js';

describe('a start while the database is away', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;

  beforeEach(async () => {
    database = await openTestDatabase();
    proxy = await startDatabaseProxy(database.url);
    proxy.cut();
  });
  afterEach(async () => {
    endAttempts();
    await proxy.close();
    await database.close();
  });

  /** Prepares the database, and returns the messages of the wait. */
  async function prepare(
    startTimeout: number,
    onMessage: (message: string) => unknown = () => undefined,
  ): Promise<{ messages: string[]; isPrepared: boolean }> {
    const messages: string[] = [];
    const config = { ...readConfig({}).database, url: proxy.url, startTimeout };
    const isPrepared = await prepareDatabase(config, (message) => {
      messages.push(message);
      onMessage(message);
    }).then(
      () => true,
      () => false,
    );
    return { messages, isPrepared };
  }

  it('waits until it is back', async () => {
    expect(await prepare(86_400_000, () => proxy.restore())).toMatchObject({ isPrepared: true });
    expect(await database.query('SELECT 1 FROM plants')).toEqual([]);
  });

  it('reports one reason once, and not at every attempt', async () => {
    const { messages, isPrepared } = await prepare(3500);
    expect(messages).toEqual([expect.stringContaining('Waiting for the database at 127.0.0.1:')]);
    expect(isPrepared).toBe(false);
  });

  it('reports a reason again after half a minute', async () => {
    const now = performance.now.bind(performance);
    let ahead = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + ahead);
    const { messages } = await prepare(75_000, () => (ahead += 30_000));
    clock.mockRestore();
    expect(messages).toHaveLength(3);
  });

  it('waits as long as it should when the date is set ahead', async () => {
    const now = Date.now.bind(Date);
    let ahead = 0;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + ahead);
    const { isPrepared } = await prepare(60_000, () => {
      ahead = 3_600_000;
      const made = proxy.connections;
      // The next attempt fails, so that the time limit is checked with the new date.
      void until(() => proxy.connections > made).then(() => proxy.restore());
    });
    clock.mockRestore();
    expect(isPrepared).toBe(true);
  });

  // On a server, each connection has its own settings.
  (isOnServer ? it.skip : it)('reports another reason', async () => {
    await database.query('SET default_transaction_read_only = on');
    const { messages, isPrepared } = await prepare(86_400_000, (message) => {
      if (message.includes('read-only')) {
        void database.query('SET default_transaction_read_only = off');
      } else {
        proxy.restore();
      }
    });
    expect(messages).toEqual([
      expect.not.stringContaining('read-only'),
      expect.stringContaining('it is read-only'),
    ]);
    expect(isPrepared).toBe(true);
  });

  it.each(['1', '2'])('ends at a signal, with %s worker(s)', async (workers) => {
    const service = attempt(['dist/main.js'], {
      PORT: '0',
      DATABASE_URL: proxy.url,
      WEB_CONCURRENCY: workers,
    });
    await service.waitFor(/Waiting for the database/);
    service.process.kill('SIGTERM');
    expect(await service.exit()).toBe(0);
  });
});
