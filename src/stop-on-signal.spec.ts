import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import { holdTime } from '../test/setup/time/held-timers.js';
import { untilSettled } from '../test/setup/time/settled.js';
import { StartError } from './errors/start-error.js';
import { STOP_SIGNALS } from './signals.js';
import { stopOnSignal } from './stop-on-signal.js';

interface Entry {
  readonly level: number;
  readonly signal?: string;
  readonly msg: string;
}

describe('a signal', () => {
  let exitCodes: unknown[];
  let errors: string;
  let entries: Entry[];
  let earlier: Map<NodeJS.Signals, NodeJS.SignalsListener[]>;

  beforeEach(() => {
    holdTime();
    [exitCodes, errors, entries] = [[], '', []];
    earlier = new Map(STOP_SIGNALS.map((it) => [it, process.listeners(it)]));
    jest.spyOn(process, 'exit').mockImplementation(((code: unknown) => {
      exitCodes.push(code);
    }) as typeof process.exit);
    jest.spyOn(process.stderr, 'write').mockImplementation((text) => {
      errors += String(text);
      return true;
    });
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
    for (const [signal, listeners] of earlier) {
      const added = process.listeners(signal).filter((it) => !listeners.includes(it));
      for (const listener of added) process.off(signal, listener);
    }
  });

  const logger = pino(
    {},
    { write: (line: string) => void entries.push(JSON.parse(line) as Entry) },
  );
  /** As Node does. */
  const send = (signal: NodeJS.Signals) => void process.emit(signal, signal);
  const messages = () => entries.map(({ msg }) => msg);
  const hasEnded = () => untilSettled(() => exitCodes.length > 0);

  it.each(STOP_SIGNALS)(
    '%s stops the service, and ends its process with exit code 0',
    async (it) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const stopping = stopOnSignal(logger, () => promise);
      expect(stopping.aborted).toBe(false);
      send(it);
      expect(stopping.aborted).toBe(true);
      expect(exitCodes).toEqual([]);
      resolve();
      await hasEnded();
      expect(exitCodes).toEqual([0]);
      expect(messages()).toEqual([
        `The Plant Store stops: it received ${it}.`,
        'The Plant Store has stopped.',
      ]);
    },
  );

  it('ends the process with exit code 1 and the reason if the stop fails', async () => {
    stopOnSignal(logger, () => Promise.reject(new StartError('The disk is gone.')));
    send('SIGTERM');
    await hasEnded();
    expect(exitCodes).toEqual([1]);
    expect(errors).toBe('The disk is gone.\n');
  });

  describe('after the first one', () => {
    beforeEach(() => {
      stopOnSignal(logger, () => new Promise<void>(() => undefined));
      send('SIGTERM');
    });

    it('ends the process at once if it is another one', () => {
      send('SIGINT');
      expect(exitCodes).toEqual([1]);
      expect(entries[1]).toMatchObject({
        level: 40,
        signal: 'SIGINT',
        msg: 'The Plant Store ends without waiting for requests: it received a second signal, SIGINT.',
      });
    });

    it('ends the process if it is the same one, a tenth of a second later: npm sends on what the terminal sent to both', () => {
      jest.advanceTimersByTime(99);
      send('SIGTERM');
      expect(exitCodes).toEqual([]);
      jest.advanceTimersByTime(1);
      send('SIGTERM');
      expect(exitCodes).toEqual([1]);
    });

    it('changes nothing if it is SIGHUP, which a terminal that is closed sends several times', () => {
      jest.advanceTimersByTime(1000);
      send('SIGHUP');
      expect(exitCodes).toEqual([]);
    });
  });
});
