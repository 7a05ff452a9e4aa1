import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { until } from '../setup/time/until.js';
import { engine } from './engine.js';

/** A Postgres server in a container. */
export interface Postgres {
  /** Its network, and its name in it. */
  readonly network: string;
  readonly host: string;
  /** @returns the first column of each row */
  query(sql: string): Promise<string[]>;
  remove(): Promise<void>;
}

/** Starts the image of docker-compose.yml, with an empty database `plants` and a user `plants`. */
export async function startPostgres(password: string): Promise<Postgres> {
  const [, image] = /image: (postgres:\S+)/.exec(readFileSync('docker-compose.yml', 'utf8'))!;
  const host = `postgres-${randomUUID()}`;
  const network = `network-${host}`;
  await engine('network', 'create', network);
  const variables = { POSTGRES_USER: 'plants', POSTGRES_DB: 'plants', POSTGRES_PASSWORD: password };
  const env = Object.entries(variables).map(([name, value]) => `--env=${name}=${value}`);
  await engine('run', '--detach', '--name', host, `--network=${network}`, ...env, image!);
  const psql = (sql: string) =>
    engine(
      ...['exec', `--env=PGPASSWORD=${password}`, host, 'psql', '--host=127.0.0.1'],
      ...[
        '--username=plants',
        '--dbname=plants',
        '--no-align',
        '--tuples-only',
        `--command=${sql}`,
      ],
    );
  // While it makes its database, it accepts no connections at this address.
  await until(() =>
    psql('SELECT 1').then(
      () => true,
      () => false,
    ),
  );
  return {
    network,
    host,
    query: async (sql) => (await psql(sql)).split('\n'),
    async remove() {
      await engine('kill', host);
      await engine('rm', '--force', '--volumes', host);
      await engine('network', 'rm', network);
    },
  };
}
