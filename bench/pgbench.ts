import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'pg-connection-string';
import { findInstalledPostgres } from '../test/setup/database/postgres-server.js';
import type { Load, LoadResult } from './load.js';

const exec = promisify(execFile);

/** The ids cover almost all of int64: pgbench refuses a wider range. */
const SCRIPT = `\\set id random(-4000000000000000000, 4000000000000000000)
INSERT INTO plants (id, name, tag) VALUES (:id, 'Equisetum fluviatile', 'Equisetum');
`;

/** Measures Postgres without a service: each client sends one prepared INSERT after the other. */
export async function runPgbench(databaseUrl: string, load: Load): Promise<LoadResult> {
  const dir = await mkdtemp(join(tmpdir(), 'plant-store-pgbench-'));
  try {
    const script = join(dir, 'insert.sql');
    await writeFile(script, SCRIPT);
    const threads = Math.min(load.connections, Math.max(1, Math.floor(availableParallelism() / 2)));
    const { stdout } = await exec(
      'pgbench',
      [
        '--no-vacuum',
        '--protocol=prepared',
        `--client=${load.connections}`,
        `--jobs=${threads}`,
        `--time=${load.seconds}`,
        `--file=${script}`,
      ],
      { env: await environmentOf(databaseUrl), signal: load.signal },
    );
    const transactions = Number(/transactions actually processed: (\d+)/.exec(stdout)?.[1]);
    const failed = Number(/failed transactions: (\d+)/.exec(stdout)?.[1] ?? 0);
    const perSecond = Number(/^tps = ([\d.]+)/m.exec(stdout)?.[1]);
    if (!(transactions > 0)) throw new Error(`pgbench measured nothing: ${stdout}`);
    return {
      acknowledged: transactions,
      failures: failed > 0 ? { 'failed transactions': failed } : {},
      // The rate of pgbench leaves out the time that connecting took.
      seconds: transactions / perSecond,
    };
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** The environment carries the password: a command line is visible to everybody on the machine. */
async function environmentOf(databaseUrl: string): Promise<Record<string, string>> {
  const { host, port, user, password, database } = parse(databaseUrl);
  const ssl = new URL(databaseUrl).searchParams;
  const variables = {
    // With a server on another machine, this one may have pgbench on its PATH and no server programs.
    PATH: [process.env['PATH'], await findInstalledPostgres().catch(() => '')].join(delimiter),
    PGHOST: host,
    PGPORT: port,
    PGUSER: user,
    PGPASSWORD: password,
    PGDATABASE: database,
    PGSSLMODE: ssl.get('sslmode'),
    PGSSLROOTCERT: ssl.get('sslrootcert'),
  };
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => (value ? [[name, value]] : [])),
  );
}
