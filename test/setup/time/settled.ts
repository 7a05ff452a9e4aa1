/**
 * Waits for a turn of the event loop, so that all settled promises have had their effects. It stands apart from `until`, which
 * imports the module that `importWithHeldWaits` replaces.
 */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Waits for the few turns of the event loop in which promises that wait for each other have their effects. */
export async function chainsSettled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await settled();
}
