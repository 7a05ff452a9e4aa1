import { readFileSync } from 'node:fs';
import type { AppConfig } from './config/config.js';

/** The descriptors of a process besides its connections: pipes, files, and requests to the issuer and the collector. */
const RESERVE = 100;

/**
 * Compares the connections that the settings allow with the file descriptors that the system allows.
 *
 * @param config of one process
 * @param limit of descriptors of a process, by default that of this one
 * @returns a warning for the operator; undefined if there are enough, or the limit is not known
 */
export function descriptorWarning(
  { http, database }: AppConfig,
  limit = readDescriptorLimit(),
): string | undefined {
  const needed = http.maxConnections + database.poolSize + RESERVE;
  if (limit === undefined || limit >= needed) return undefined;
  return (
    `The limit of open files is ${limit}, but with these settings a process may need ${needed}. At the limit, clients cannot ` +
    'connect, and plants get 503 if a connection to the database must be replaced. Raise the limit (ulimit -n, LimitNOFILE), or lower MAX_CONNECTIONS.'
  );
}

/** @returns undefined if there is no limit, or the system is not Linux; Node has raised the soft limit to the hard one */
function readDescriptorLimit(): number | undefined {
  try {
    const [, limit] =
      /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    // No digits follow if it is `unlimited`.
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}
