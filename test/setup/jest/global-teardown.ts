import type {} from './global-setup.js';

/** Stops the server that global setup started. */
export default async function globalTeardown(): Promise<void> {
  await globalThis.stopTestServer?.();
}
