import fs from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { settled } from '../../test/setup/settled.js';
import type * as LoggerModule from './logger.js';

const { isTTY } = process.stdout;
let createLogger: typeof LoggerModule.createLogger;
/** All that was written to standard output. */
let output: string;

beforeEach(async () => {
  jest.useFakeTimers({
    now: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
    doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'],
  });
  output = '';
  jest.spyOn(fs, 'writeSync').mockImplementation((_descriptor: number, text: unknown) => {
    output += String(text);
    return Buffer.byteLength(String(text));
  });
  Object.assign(process.stdout, { isTTY: false });
  // The module keeps one stream for the process, with the timers of the test that created it.
  jest.resetModules();
  ({ createLogger } = await import('./logger.js'));
});
afterEach(() => {
  jest.runOnlyPendingTimers();
  Object.assign(process.stdout, { isTTY });
  jest.restoreAllMocks();
  jest.useRealTimers();
});

const flush = () => jest.advanceTimersByTime(100);

describe('the log', () => {
  it.each([
    ['info', ['usual', 'unusual', 'wrong']],
    ['warn', ['unusual', 'wrong']],
    ['error', ['wrong']],
    ['silent', []],
  ] as const)('with the level %s has the entries %j', (level, messages) => {
    const logger = createLogger({ level });
    logger.info('usual');
    logger.warn('unusual');
    logger.error('wrong');
    flush();
    expect(output.match(/(?<="msg":")\w+/g) ?? []).toEqual(messages);
  });

  it('is JSON, one entry a line, with the time as ISO text', () => {
    const logger = createLogger({ level: 'info' });
    logger.info({ status: 200 }, 'first');
    logger.info('second');
    flush();
    expect(output).toBe(
      '{"level":30,"time":"2026-01-02T03:04:05.006Z","status":200,"msg":"first"}\n' +
        '{"level":30,"time":"2026-01-02T03:04:05.006Z","msg":"second"}\n',
    );
  });

  it('on a terminal is text for people', async () => {
    Object.assign(process.stdout, { isTTY: true });
    createLogger({ level: 'info' }).info({ status: 200 }, 'hello');
    await settled();
    expect(stripVTControlCharacters(output)).toMatch(
      /^\[\d\d:\d\d:\d\d\] INFO: hello \{"status":200\}\n$/,
    );
  });

  it('is written after a tenth of a second', () => {
    createLogger({ level: 'info' }).info('hello');
    jest.advanceTimersByTime(99);
    expect(output).toBe('');
    jest.advanceTimersByTime(1);
    expect(output).toContain('hello');
  });

  it('is written without delay when 2 KB are full', () => {
    const logger = createLogger({ level: 'info' });
    logger.info('a'.repeat(1000));
    expect(output).toBe('');
    logger.info('b'.repeat(1000));
    expect(output.length).toBeGreaterThan(2000);
  });
});
