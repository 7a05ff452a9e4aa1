// Gives back what a request took, however its client leaves.

interface Closable {
  /** Whether `close` was emitted, or is about to be. */
  readonly closed: boolean;
  on(event: 'close', listener: () => void): unknown;
}

/**
 * Calls `release` once, when `stream` closes, or now if it is closed already.
 *
 * A client may reset its connection while its token is looked up. A listener for `close` that is added later would never
 * be called, and the resources of the request would never be released.
 *
 * @param stream a request, a response or a socket
 */
export function whenClosed(stream: Closable, release: () => void): void {
  if (stream.closed) release();
  else stream.on('close', release);
}
