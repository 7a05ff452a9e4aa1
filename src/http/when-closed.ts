/** A request, a response or a socket. */
interface Closable {
  /** Whether `close` was emitted, or is about to be. */
  readonly closed: boolean;
  once(event: 'close', listener: () => void): unknown;
}

/**
 * Gives back what a request takes: calls `release` once, when `stream` closes, or now if it is closed already.
 *
 * A client may reset its connection while its token is looked up. `close` is emitted once, so a listener that is added
 * after that would never be called, and what it gives back would be lost.
 */
export function whenClosed(stream: Closable, release: () => void): void {
  if (stream.closed) release();
  else stream.once('close', release);
}
