import type { QueryConfig } from 'pg';

/**
 * A statement with a limit of its own to the wait for its result. The types of pg do not have `query_timeout` of a statement.
 *
 * @param milliseconds undefined: the limit of the connection, if it has one
 */
export function limited(
  milliseconds: number | undefined,
  text: string,
  values: unknown[] = [],
): QueryConfig {
  return { text, values, query_timeout: milliseconds } as QueryConfig;
}
