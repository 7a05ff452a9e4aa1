import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from '../setup/process/ports.js';
import { pgbouncerConfig } from '../setup/database/pgbouncer-config.js';
import type { PostgresServer } from '../setup/database/postgres-server.js';
import { findUser } from '../setup/process/processes.js';
import { runInProcess } from '../setup/service/cli.js';

/** A PgBouncer in transaction mode in front of a server. */
export async function startPgBouncer(
  server: PostgresServer,
): Promise<{ url: string; close(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'plant-store-bouncer-'));
  const user = await findUser();
  const [port] = (await findFreePorts(1)) as [number];
  const [config, userFile] = [join(dir, 'pgbouncer.ini'), join(dir, 'users.txt')];
  const database = { name: 'plants_test', port: server.port };
  await writeFile(userFile, '"plants" ""\n');
  await writeFile(
    config,
    pgbouncerConfig(port, database, userFile, {
      default_pool_size: '4',
      server_login_retry: '1',
    }),
  );
  if (user.uid !== undefined) {
    for (const path of [dir, config, userFile]) await chown(path, user.uid, user.gid);
  }
  const bouncer = spawn('/usr/sbin/pgbouncer', [config], {
    ...user,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(bouncer, 'close');
  for await (const chunk of bouncer.stderr) {
    if (String(chunk).includes('process up')) break;
  }
  bouncer.stderr.resume();
  return {
    url: `postgres://plants@127.0.0.1:${port}/plants_test`,
    async close() {
      bouncer.kill('SIGTERM');
      await exited;
      await rm(dir, { recursive: true });
    },
  };
}

/** Runs the statements in a message that refuses the settings of the role, and makes PgBouncer open new sessions. */
export async function mendSettings(server: PostgresServer, message: string): Promise<void> {
  for (const statement of message.match(/ALTER ROLE [^;]+;/g)!) await server.query(statement);
  await renewSessions(server);
}

/** Ends the sessions that PgBouncer keeps. */
export async function renewSessions(server: PostgresServer): Promise<void> {
  await server.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plant-store'`,
  );
}

/** Gives the role the settings for the limit of time of a service behind PgBouncer. */
export async function setUpRole(
  server: PostgresServer,
  url: string,
  env: Record<string, string>,
): Promise<void> {
  const { stderr } = await runInProcess(['migrate'], { DATABASE_URL: url, ...env });
  await mendSettings(server, stderr);
}
