// Against floods of large bodies, of which most are refused: V8 keeps less garbage in memory.

/** A collection takes some milliseconds; after 16 MiB, it was too late to save much memory. */
const BYTES_PER_COLLECTION = 4_194_304;

let bytes = 0;

/**
 * Counts bytes of bodies, also of those that are discarded, when they arrive, and collects the garbage among new objects after each
 * 4 MiB of them. V8 itself would wait for more, because most of these bytes are outside of its heap: most bodies of an overloaded
 * service are garbage at once. Without the flag `--expose-gc`, V8 decides alone.
 */
export function countBodyBytes(count: number): void {
  bytes += count;
  if (bytes < BYTES_PER_COLLECTION) return;
  bytes = 0;
  globalThis.gc?.({ type: 'minor' });
}
