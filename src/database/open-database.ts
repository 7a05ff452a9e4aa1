import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../config/config.js';
import type { DatabaseConfig } from './database-options.js';
import {
  DataDirInUseError,
  joinEmbeddedPostgres,
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from './embedded-postgres.js';

/** The database of this configuration, ready to be connected to. */
export interface OpenDatabase {
  readonly config: DatabaseConfig;
  /** Stops the embedded Postgres, if this process started it. */
  close(): Promise<void>;
}

/**
 * The server in `DATABASE_URL`, or the embedded Postgres, started here.
 *
 * @throws DataDirInUseError, DataDirNotWritableError
 */
export function openDatabase(config: Config['database']): Promise<OpenDatabase> {
  return open(config, true);
}

const JOIN_INTERVAL_MS = 100;

/**
 * Like `openDatabase`, but works beside a running service: joins its embedded Postgres, and waits while
 * another process is about to open or close the folder.
 */
export async function joinDatabase(config: Config['database']): Promise<OpenDatabase> {
  const deadline = Date.now() + config.startTimeout;
  for (;;) {
    try {
      return await open(config, false);
    } catch (error) {
      if (!(error instanceof DataDirInUseError)) throw error;
      const joined = await joinEmbeddedPostgres(config.dataDir);
      if (joined !== undefined) return opened(config, joined);
      if (Date.now() > deadline) throw error;
      await delay(JOIN_INTERVAL_MS);
    }
  }
}

async function open(config: Config['database'], isShared: boolean): Promise<OpenDatabase> {
  if (config.url !== undefined) {
    return { config: { ...config, url: config.url }, close: () => Promise.resolve() };
  }
  return opened(config, await startEmbeddedPostgres(config.dataDir, isShared));
}

function opened(config: Config['database'], embedded: EmbeddedPostgres): OpenDatabase {
  return { config: { ...config, url: embedded.url }, close: () => embedded.close() };
}
