import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import { holdTime } from '../test/setup/time/held-timers.js';
import { untilSettled } from '../test/setup/time/settled.js';
import { StartError } from './errors/start-error.js';
import { STOP_SIGNALS, stopOnSignal } from './stop-on-signal.js';

// The other signals, and what the log says, are shown by sending them: see signals.e2e.ts.
describe('a signal', () => {
  let exitCodes: unknown[];
  let errors: string;
  let earlier: Map<NodeJS.Signals, NodeJS.SignalsListener[]>;

  beforeEach(() => {
    holdTime();
    [exitCodes, errors] = [[], ''];
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

  const logger = pino({ level: 'silent' });
  /** As Node does. */
  const send = (signal: NodeJS.Signals) => void process.emit(signal, signal);
  const hasEnded = () => untilSettled(() => exitCodes.length > 0);

  it('ends the process with exit code 1 and the reason if the stop fails', async () => {
    stopOnSignal(logger, () => Promise.reject(new StartError('The disk is gone.')));
    send('SIGTERM');
    await hasEnded();
    expect(exitCodes).toEqual([1]);
    expect(errors).toBe('The disk is gone.\n');
  });

  it('that comes again ends the process from a tenth of a second on: npm sends on what the terminal sent to both', () => {
    stopOnSignal(logger, () => new Promise<void>(() => undefined));
    send('SIGTERM');
    jest.advanceTimersByTime(99);
    send('SIGTERM');
    expect(exitCodes).toEqual([]);
    jest.advanceTimersByTime(1);
    send('SIGTERM');
    expect(exitCodes).toEqual([1]);
  });

  it('SIGHUP that comes again is ignored: both the system and the shell send it when a terminal is closed', () => {
    stopOnSignal(logger, () => new Promise<void>(() => undefined));
    send('SIGHUP');
    jest.advanceTimersByTime(100);
    send('SIGHUP');
    expect(exitCodes).toEqual([]);
  });
});
