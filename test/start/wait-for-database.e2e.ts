import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { patientConfig } from '../setup/database/patient.js';
import { prepareDatabase } from '../../src/database/prepare-database.js';
import { attempt, endAttempts } from '../setup/service/attempts.js';
import { startDatabaseProxy, type DatabaseProxy } from '../setup/database/database-proxy.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { replaceWaits } from '../setup/time/held-waits.js';
import { settled } from '../setup/time/settled.js';

describe('a start while the database is away', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  let restoreWaits: () => void;

  beforeEach(async () => {
    database = await openTestDatabase();
    proxy = await startDatabaseProxy(database.url);
    proxy.cut();
    // The pause before the next attempt takes no time.
    restoreWaits = replaceWaits(settled);
  });
  afterEach(async () => {
    restoreWaits();
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
    // Patient: a connection that a busy machine delays is no other reason for the wait.
    const config = patientConfig({ url: proxy.url, startTimeout });
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

  it('reports another reason', async () => {
    await database.set('default_transaction_read_only', 'on');
    const { messages, isPrepared } = await prepare(86_400_000, (message) => {
      if (message.includes('read-only')) {
        void database.set('default_transaction_read_only', 'off');
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
