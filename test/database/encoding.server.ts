import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { useResources } from '../setup/jest/resources.js';
import { attempt } from '../setup/process/attempts.js';
import { startPostgresServer, type PostgresServer } from '../setup/database/postgres-server.js';

const resources = useResources();
let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgresServer();
});
afterAll(() => server.close());

it.each(['LATIN1', 'SQL_ASCII'])(
  'a database with the encoding %s is refused at the start',
  async (encoding) => {
    const name = `plants_${encoding.toLowerCase()}`;
    await server.administer(
      `CREATE DATABASE ${name} ENCODING '${encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`,
    );
    const url = server.url.replace('plants_test', name);
    for (const args of [['dist/main.js'], ['dist/cli.js', 'migrate']]) {
      const start = attempt(resources, args, { DATABASE_URL: url, PORT: '0' });
      expect(await start.exit()).toBe(1);
      expect(start.stderr).toContain(
        `The database at 127.0.0.1:${server.port}/${name} cannot be used: it uses the encoding ${encoding}. Create it with ENCODING 'UTF8'.`,
      );
    }
    await server.administer(`DROP DATABASE ${name}`);
  },
);
