import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { useResources } from '../setup/jest/resources.js';
import { attempt } from '../setup/process/attempts.js';
import { startDatabaseProxy, type DatabaseProxy } from '../setup/database/database-proxy.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';

describe('a start while the database is away', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  const resources = useResources();

  beforeEach(async () => {
    database = await openTestDatabase();
    proxy = await startDatabaseProxy(database.url);
    proxy.cut();
  });
  afterEach(async () => {
    await proxy.close();
    await database.close();
  });

  it('ends at a signal', async () => {
    const service = attempt(resources, ['dist/main.js'], {
      PORT: '0',
      DATABASE_URL: proxy.url,
    });
    await service.waitFor(/Waiting for the database/);
    service.process.kill('SIGTERM');
    expect(await service.exit()).toBe(0);
  });
});
