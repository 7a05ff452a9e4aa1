/**
 * Waits for a turn of the event loop, so that all settled promises have had their effects. It stands apart from `until`, which
 * imports the module that `importWithWaits` replaces.
 */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Waits for what the network does, in turns of the event loop: timers may be held. */
export async function untilSettled(condition: () => boolean): Promise<void> {
  while (!condition()) await settled();
}

/** Waits for the few turns of the event loop in which promises that wait for each other have their effects. */
export async function chainsSettled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await settled();
}
