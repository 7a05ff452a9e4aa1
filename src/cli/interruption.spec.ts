import { describe, expect, it } from '@jest/globals';
import { Interruption, untilInterrupted } from './interruption.js';

describe('untilInterrupted', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'is ended by %s, also while the work starts',
    async (signal) => {
      const ended = untilInterrupted(() => {
        process.emit(signal, signal);
        return new Promise(() => undefined);
      });
      await expect(ended).rejects.toThrow(Interruption);
      process.removeAllListeners(signal);
    },
  );

  it('listens no longer when the work has ended', async () => {
    const listeners = process.listenerCount('SIGINT');
    await untilInterrupted(() => Promise.resolve());
    await expect(untilInterrupted(() => Promise.reject(new Error('full')))).rejects.toThrow('full');
    expect(process.listenerCount('SIGINT')).toBe(listeners);
  });
});
