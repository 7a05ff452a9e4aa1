import { setTimeout as delay } from 'node:timers/promises';
import type { Config, DatabaseConfig } from '../config/config.js';
import {
  DataDirInUseError,
  joinEmbeddedPostgres,
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from './embedded/embedded-postgres.js';

/** The database of this configuration, ready to be connected to. */
export interface OpenDatabase {
  readonly config: DatabaseConfig;
  /** Stops the embedded Postgres, if this process started it. */
  close(): Promise<void>;
}

const RETRY_INTERVAL_MS = 100;

/**
 * The server in `DATABASE_URL`, or the embedded Postgres, started here. Waits for a command that has the data
 * folder open.
 *
 * @throws DataDirInUseError when another service runs on the folder; StartError when it cannot be used
 */
export function openDatabase(config: Config['database']): Promise<OpenDatabase> {
  return openOr(config, true, async (joined, inUse) => {
    await joined.close();
    throw inUse;
  });
}

/** Like `openDatabase`, but works beside a running service, on its embedded Postgres. */
export function joinDatabase(config: Config['database']): Promise<OpenDatabase> {
  return openOr(config, false, (joined) => Promise.resolve(opened(config, joined)));
}

/** @param join what to do where another process serves the folder */
async function openOr(
  config: Config['database'],
  isShared: boolean,
  join: (embedded: EmbeddedPostgres, inUse: DataDirInUseError) => Promise<OpenDatabase>,
): Promise<OpenDatabase> {
  const deadline = Date.now() + config.startTimeout;
  for (;;) {
    try {
      return await open(config, isShared);
    } catch (error) {
      if (!(error instanceof DataDirInUseError)) throw error;
      const joined = await joinEmbeddedPostgres(config.dataDir);
      if (joined !== undefined) return join(joined, error);
      if (Date.now() > deadline) throw error;
      await delay(RETRY_INTERVAL_MS);
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
  return {
    config: { ...config, url: embedded.url, isEmbedded: true },
    close: () => embedded.close(),
  };
}
