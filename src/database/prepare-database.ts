import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'pg-connection-string';
import { StartError } from '../errors/start-error.js';
import type { DatabaseConfig } from '../config/config.js';
import { migrate, MigrationInProgressError } from './migrate.js';
import { describeDatabaseError, isMisconfigured, isUnavailable } from './postgres-errors.js';

const RETRY_INTERVAL_MS = 1000;

/**
 * Brings the schema up to date, and waits for a database that cannot be reached yet.
 *
 * @param log takes one line for every attempt that failed
 * @throws StartError when the database stays away for `config.startTimeout`, or refuses the service for good
 */
export async function prepareDatabase(
  config: DatabaseConfig,
  log: (line: string) => void,
): Promise<void> {
  const address = addressOf(config);
  const deadline = Date.now() + config.startTimeout;
  for (;;) {
    try {
      await migrate(config);
      return;
    } catch (error) {
      const reason = describeDatabaseError(error);
      const mayHelp = isWorthWaiting(error);
      if (!mayHelp || Date.now() + RETRY_INTERVAL_MS > deadline) {
        const failure = mayHelp
          ? `could not be used within ${config.startTimeout} ms`
          : 'cannot be used';
        throw new StartError(`The database at ${address} ${failure}: ${reason}`, { cause: error });
      }
      log(`Waiting for the database at ${address}: ${reason}`);
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
  // Not the folder of its socket: that of a command is removed before an operator can look at it.
  if (isEmbedded === true) return dataDir;
  const { host, port, database, user } = parse(url);
  return `${host || 'localhost'}:${port || '5432'}/${database ?? user ?? ''}`;
}
