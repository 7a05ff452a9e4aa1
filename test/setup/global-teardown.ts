import type {} from './global-setup.js';

/** Stops the servers that global setup started. */
export default async function globalTeardown(): Promise<void> {
  for (const server of globalThis.embeddedServers ?? []) await server.close();
}
