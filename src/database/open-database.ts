// Opens the database: a server, or the embedded Postgres of this process or of a service that runs.

import { setTimeout as delay } from 'node:timers/promises';
import type { Config, DatabaseConfig } from '../config/config.js';
import { makeDataDir, openSocketDir } from './embedded/data-dir.js';
import { DataDirInUseError, startEmbeddedPostgres } from './embedded/embedded-postgres.js';
import { findPostgresPackage } from './embedded/postgres-package.js';

/** A database that accepts connections. */
export interface OpenDatabase {
  readonly config: DatabaseConfig;
  /** Resolves with the reason, one sentence, when the embedded Postgres that this process started fails. */
  readonly failed?: Promise<string>;
  /** Stops the embedded Postgres, if this process started it. */
  close(): Promise<void>;
}

/** Other processes find the embedded Postgres of a service at this port: the last part of the name of its socket. */
const SERVICE_PORT = 5432;

/** A command ends its Postgres when its work is done, so no other process should use it. */
const COMMAND_PORT = 5433;

const RETRY_INTERVAL_MS = 100;

/** The Postgres of a service that was killed ends earlier, also a frozen one (`run-until-input-ends.sh`). */
const LEFT_BEHIND_MS = 4000;

/** SQLSTATE of a server that works, and has no connection left. */
const TOO_MANY_CONNECTIONS = '53300';

/** Without a limit, a frozen Postgres would hold up the start. */
const LOGIN_TIMEOUT_MS = 1000;

/**
 * Opens the server in `DATABASE_URL`, or starts the embedded Postgres. Waits while a command, or a service that is ending, has the
 * data folder open.
 *
 * @param log receives what an operator should know of the embedded Postgres
 * @throws DataDirInUseError when another service runs on the folder; StartError when the folder cannot be used
 */
export function openDatabase(
  config: Config['database'],
  log: (text: string) => void,
): Promise<OpenDatabase> {
  return open(config, SERVICE_PORT, log);
}

/** Like `openDatabase`, but joins the embedded Postgres of a running service. */
export function joinDatabase(config: Config['database']): Promise<OpenDatabase> {
  return open(config, COMMAND_PORT, () => undefined);
}

async function open(
  config: Config['database'],
  port: number,
  log: (text: string) => void,
): Promise<OpenDatabase> {
  const { url } = config;
  if (url !== undefined) return { config: { ...config, url }, close: () => Promise.resolve() };
  // Variables for clients of other servers, such as PGOPTIONS: an address does not override all that pg reads.
  for (const name of Object.keys(process.env)) if (name.startsWith('PG')) delete process.env[name];
  const folder = findPostgresPackage();
  makeDataDir(config.dataDir);
  await using resources = new AsyncDisposableStack();
  const socketDir = openSocketDir(config.dataDir, resources);
  const isServiceRunning = () => acceptsLogin(urlOf(socketDir, SERVICE_PORT));
  const databaseAt = (usedPort: number, failed?: Promise<string>) => {
    const used = resources.move();
    return {
      config: { ...config, url: urlOf(socketDir, usedPort), isEmbedded: true },
      ...(failed && { failed }),
      close: () => used.disposeAsync(),
    };
  };
  const leftBehindUntil = performance.now() + LEFT_BEHIND_MS;
  const deadline = performance.now() + config.startTimeout;
  for (;;) {
    if (port === COMMAND_PORT && (await isServiceRunning())) return databaseAt(SERVICE_PORT);
    try {
      const postgres = await startEmbeddedPostgres(folder, config, port, log);
      resources.defer(() => postgres.stop());
      return databaseAt(port, postgres.failed);
    } catch (error) {
      if (!(error instanceof DataDirInUseError) || performance.now() > deadline) throw error;
      const mayBeLeftBehind = performance.now() < leftBehindUntil;
      if (port === SERVICE_PORT && !mayBeLeftBehind && (await isServiceRunning())) throw error;
    }
    await delay(RETRY_INTERVAL_MS);
  }
}

/** The service reports all errors of its own sessions itself: its log needs no second message of Postgres about them. */
const QUIET_SESSION = '-c log_min_messages=panic';

function urlOf(socketDir: string, port: number): string {
  return `postgres://postgres@/postgres?host=${encodeURIComponent(socketDir)}&port=${port}&sslmode=disable&options=${encodeURIComponent(QUIET_SESSION)}`;
}

/** Whether a Postgres works at this address. One that is stopping has a socket, too, but refuses the login. */
async function acceptsLogin(url: string): Promise<boolean> {
  // Not imported before: a start with a wrong setting does not need it.
  const { Client } = await import('pg');
  const client = new Client({ connectionString: url, connectionTimeoutMillis: LOGIN_TIMEOUT_MS });
  // A lost connection is also reported as an event, which would end the process without a listener.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code === TOO_MANY_CONNECTIONS;
  } finally {
    await client.end().catch(() => undefined);
  }
}
