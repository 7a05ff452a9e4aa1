import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'pg-connection-string';
import { StartError } from '../errors/start-error.js';
import type { DatabaseConfig } from '../config/config.js';
import { migrate, MigrationInProgressError } from './migrate.js';
import { describeDatabaseError, isMisconfigured, isUnavailable } from './postgres-errors.js';

const RETRY_INTERVAL_MS = 1000;

/**
 * Brings the schema up to date, and waits for a database that is not there yet.
 *
 * @param log takes one line for every attempt that failed
 * @throws StartError when it stays away for `config.startTimeout`, or refuses us for good
 */
export async function prepareDatabase(
  config: DatabaseConfig,
  log: (line: string) => void,
): Promise<void> {
  const deadline = Date.now() + config.startTimeout;
  for (;;) {
    try {
      await migrate(config);
      return;
    } catch (error) {
      const database = `The database at ${addressOf(config)}`;
      const reason = describeDatabaseError(error);
      if (!isWorthWaiting(error)) {
        throw new StartError(`${database} cannot be used: ${reason}`, { cause: error });
      }
      if (Date.now() + RETRY_INTERVAL_MS > deadline) {
        throw new StartError(
          `${database} could not be used within ${config.startTimeout} ms: ${reason}`,
          { cause: error },
        );
      }
      log(`Waiting for the database at ${addressOf(config)}: ${reason}`);
      await delay(RETRY_INTERVAL_MS);
    }
  }
}

function isWorthWaiting(error: unknown): boolean {
  if (error instanceof MigrationInProgressError) return true;
  return isUnavailable(error) && !isMisconfigured(error);
}

/** The address without user, password and parameters. */
function addressOf({ url, isEmbedded, dataDir }: DatabaseConfig): string {
  // A command reaches it through a socket elsewhere, which is gone when an operator looks for it.
  if (isEmbedded === true) return dataDir;
  const { host, port, database, user } = parse(url);
  return `${host || 'localhost'}:${port || '5432'}/${database ?? user ?? ''}`;
}
