import { Client } from 'pg';
import type { DatabaseConfig } from '../config/config.js';
import { beginSession, type TimeLimits } from './session.js';

/** How long a connection may take to close. */
const CLOSE_TIMEOUT_MS = 1000;

/** Waits until connections have closed, at most a second: a frozen server never closes its side. */
export async function untilClosed(closing: Promise<unknown>): Promise<void> {
  await Promise.race([
    closing,
    new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref()),
  ]);
}

/**
 * Runs `work` on a connection of its own, for commands with statements that may take long. Opening it takes at most
 * `config.timeout`. A statement has the time limit that `work` gives it.
 *
 * @param limits of the server
 * @throws the error of the connection or of `work`
 */
export async function withConnection<Result>(
  config: DatabaseConfig,
  limits: TimeLimits,
  work: (client: Client) => Promise<Result>,
): Promise<Result> {
  const client = new Client({
    connectionString: config.url,
    application_name: 'plant-store',
    connectionTimeoutMillis: config.timeout,
    keepAlive: true,
  });
  // A lost connection is also reported as an event, which would end the process without a listener.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await beginSession(client, limits, config.timeout);
    const result = await work(client);
    await untilClosed(client.end());
    return result;
  } finally {
    // After a failure, there may be data that nobody reads.
    client.connection.stream.destroy();
  }
}
