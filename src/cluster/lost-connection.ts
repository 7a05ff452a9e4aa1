import type { Worker } from 'node:cluster';

interface Handle {
  close(): void;
}

/**
 * Closes the connection that a worker took to its grave. node:cluster hands every worker one connection at a
 * time, and forgets the one whose receipt was not acknowledged: it would stay open in the primary, and its
 * client would wait for ever.
 */
export function closeLostConnection(worker: Worker): void {
  const { process } = worker;
  const send = process.send.bind(process) as (...parameters: unknown[]) => boolean;
  let last: Handle | undefined;
  process.send = (message: unknown, handle?: unknown, ...others: unknown[]) => {
    if (isHandle(handle)) last = handle;
    return send(message, handle, ...others);
  };
  // Whichever is the later. To close a handle twice, or one that the worker has by now, does nothing.
  const close = () => last?.close();
  worker.once('exit', close);
  worker.once('disconnect', close);
}

function isHandle(value: unknown): value is Handle {
  return typeof value === 'object' && value !== null && 'close' in value;
}
