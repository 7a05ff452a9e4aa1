import { setTimeout as delay } from 'node:timers/promises';
import type { Config, DatabaseConfig } from '../config/config.js';
import { DataDirInUseError } from './embedded/data-dir.js';
import {
  joinEmbeddedPostgres,
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from './embedded/embedded-postgres.js';

/** A database that accepts connections. */
export interface OpenDatabase {
  readonly config: DatabaseConfig;
  /** Stops the embedded Postgres, if this process started it. */
  close(): Promise<void>;
}

const RETRY_INTERVAL_MS = 100;

/**
 * Opens the server in `DATABASE_URL`, or starts the embedded Postgres. Waits while a command has the data folder open.
 *
 * @throws DataDirInUseError when another service runs on the folder; StartError when the folder cannot be used
 */
export function openDatabase(config: Config['database']): Promise<OpenDatabase> {
  return open(config, false);
}

/** Like `openDatabase`, but joins the embedded Postgres of a running service. */
export function joinDatabase(config: Config['database']): Promise<OpenDatabase> {
  return open(config, true);
}

async function open(config: Config['database'], mayJoin: boolean): Promise<OpenDatabase> {
  const { url } = config;
  if (url !== undefined) return { config: { ...config, url }, close: () => Promise.resolve() };
  const embedded = await openEmbedded(config, mayJoin);
  return {
    config: { ...config, url: embedded.url, isEmbedded: true },
    close: () => embedded.close(),
  };
}

async function openEmbedded(
  { dataDir, startTimeout }: Config['database'],
  mayJoin: boolean,
): Promise<EmbeddedPostgres> {
  const deadline = performance.now() + startTimeout;
  for (;;) {
    try {
      return await startEmbeddedPostgres(dataDir, !mayJoin);
    } catch (error) {
      if (!(error instanceof DataDirInUseError)) throw error;
      const joined = await joinEmbeddedPostgres(dataDir);
      if (joined !== undefined && mayJoin) return joined;
      await joined?.close();
      // Only a service can be joined, and it keeps the folder open. Otherwise a command has it open, which ends soon.
      if (joined !== undefined || performance.now() > deadline) throw error;
      await delay(RETRY_INTERVAL_MS);
    }
  }
}
