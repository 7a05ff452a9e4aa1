import type { Config } from '../config/config.js';
import type { DatabaseConfig } from './database-options.js';
import { findEmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.js';

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
export async function openDatabase(config: Config['database']): Promise<OpenDatabase> {
  if (config.url !== undefined) {
    return { config: { ...config, url: config.url }, close: () => Promise.resolve() };
  }
  const embedded = await startEmbeddedPostgres(config.dataDir);
  return { config: { ...config, url: embedded.url }, close: () => embedded.close() };
}

/** Like `openDatabase`, but joins the embedded Postgres of a running service instead of refusing. */
export async function joinDatabase(config: Config['database']): Promise<OpenDatabase> {
  const url = config.url ?? (await findEmbeddedPostgres(config.dataDir));
  return openDatabase({ ...config, url });
}
