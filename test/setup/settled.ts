/** Waits for a turn of the event loop, so that all settled promises have had their effects. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
