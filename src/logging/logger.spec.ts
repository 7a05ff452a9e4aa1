import fs from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { holdTime } from '../../test/setup/time/held-timers.js';
import { settled } from '../../test/setup/time/settled.js';
// Compiled now: with the writeSync that is replaced below, Jest would write an incomplete source map.
import './logger.js';
import type * as LoggerModule from './logger.js';

const { isTTY } = process.stdout;
let createLogger: typeof LoggerModule.createLogger;
let countLostEntries: typeof LoggerModule.countLostEntries;
/** The result of a write to standard output: by default, the length of the text. */
let write: (text: string) => number;
const writeAll = (text: string) => Buffer.byteLength(text);
/** All that was written to standard output. */
let output: string;

beforeEach(async () => {
  holdTime(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
  output = '';
  write = writeAll;
  jest.spyOn(fs, 'writeSync').mockImplementation((_descriptor: number, data: unknown) => {
    const written = Buffer.from(String(data)).subarray(0, write(String(data)));
    output += String(written);
    return written.length;
  });
  Object.assign(process.stdout, { isTTY: false });
  // The module keeps one stream for the process, with the timers of the test that created it.
  jest.resetModules();
  ({ createLogger, countLostEntries } = await import('./logger.js'));
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
    ['warn', ['unusual', 'wrong']],
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
      '{"level":"info","time":"2026-01-02T03:04:05.006Z","status":200,"msg":"first"}\n' +
        '{"level":"info","time":"2026-01-02T03:04:05.006Z","msg":"second"}\n',
    );
  });

  it('has no path of a request without a route, which may be anything', () => {
    createLogger({ level: 'info' }).info({ route: 'unmatched', path: '/secret' }, 'request');
    flush();
    expect(output).toContain('"route":"unmatched","msg":"request"}');
  });

  describe('on a terminal', () => {
    const textOf = async (fields: object, message: string) => {
      Object.assign(process.stdout, { isTTY: true });
      createLogger({ level: 'info' }).info(fields, message);
      await settled();
      return stripVTControlCharacters(output).replace(/^\[\d\d:\d\d:\d\d\] /, '');
    };

    it('has no character that changes the terminal, whoever chose the text', async () => {
      const text = '\u001b[31m\u009b2J\u202e\r\n\u2028x';
      const escaped = String.raw`\u{1b}[31m\u{9b}2J\u{202e}\u{d}\u{a}\u{2028}x`;
      const path = { route: 'unmatched', path: text, status: 404, duration: 1 };
      expect(await textOf(path, 'request')).toBe(`INFO: 404 ${escaped} 1 ms\n`);
      const token = `{"token":"${escaped}"}`;
      expect(await textOf({ token: text }, text)).toContain(`INFO: ${escaped} ${token}\n`);
    });

    it('shows the stack of an error in lines', async () => {
      const text = await textOf({ err: new Error('broken\u001b') }, 'failed');
      expect(text).toContain(String.raw`Error: broken\u{1b}` + '\n');
      expect(text).toMatch(/\n +at /);
    });

    it.each([
      [
        'status, method, path, duration and error of a request',
        { method: 'POST', route: '/plants', status: 400, duration: 1.2, error: 40005, token: 'a' },
        'request',
        'INFO: 400 POST /plants 1.2 ms, error 40005 {"token":"a"}\n',
      ],
      [
        'the path that was sent, if no route has it',
        { method: 'GET', route: 'unmatched', path: '/plant', status: 404, duration: 1 },
        'request',
        'INFO: 404 GET /plant 1 ms\n',
      ],
      [
        'the message about a fault of the service',
        { method: 'GET', route: '/metrics', status: 500, duration: 1, error: 50000 },
        'The service failed.',
        'INFO: 500 GET /metrics 1 ms, error 50000, The service failed.\n',
      ],
    ])('has first %s', async (_what, fields, message, text) => {
      expect(await textOf(fields, message)).toBe(text);
    });
  });

  it('is written after a tenth of a second', () => {
    createLogger({ level: 'info' }).info('hello');
    jest.advanceTimersByTime(99);
    expect(output).toBe('');
    jest.advanceTimersByTime(1);
    expect(output).toContain('hello');
  });
});

describe('a log that cannot be written', () => {
  const fail = (code: string) => {
    let attempts = 0;
    return () => {
      // If the logger tried forever, another error would end the test after 100 attempts.
      throw Object.assign(new Error(code), { code: ++attempts < 100 ? code : undefined });
    };
  };
  const messages = () => output.match(/(?<="msg":")\w+(?="\}\n)/g) ?? [];

  it.each(['ENOSPC', 'EPIPE'])(
    'because of %s loses entries, and counts them, until it can be written again',
    (code) => {
      const logger = createLogger({ level: 'info' });
      logger.info('kept');
      write = fail(code);
      flush();
      for (let i = 0; i < 3; i++) logger.info('lost');
      flush();
      expect({ messages: messages(), lost: countLostEntries() }).toEqual({ messages: [], lost: 3 });
      write = writeAll;
      flush();
      logger.info('next');
      flush();
      expect({ messages: messages(), lost: countLostEntries() }).toEqual({
        messages: ['kept', 'next'],
        lost: 3,
      });
    },
  );

  it('because the disk is full in the middle of an entry continues with the rest of it', () => {
    const logger = createLogger({ level: 'info' });
    logger.info('first');
    const writes = [() => 20, fail('ENOSPC')];
    write = (text) => (writes.shift() ?? (() => writeAll(text)))();
    flush();
    flush();
    expect(output).toMatch(/^\{"level":"info",[^\n]*"msg":"first"\}\n$/);
  });

  it('because its reader is slow keeps entries for it, up to a mebibyte, and does not wait', () => {
    const logger = createLogger({ level: 'info' });
    write = fail('EAGAIN');
    const entry = 'a'.repeat(64 * 1024);
    for (let i = 0; i < 20; i++) logger.info(entry);
    expect(countLostEntries()).toBe(5);
    write = writeAll;
    flush();
    expect(messages()).toHaveLength(15);
  });

  it.each([
    ['for a moment is written when the process ends', 2, 2, ['late']],
    ['loses the rest when the process ends, without waiting forever', Infinity, 10, []],
  ])('%s', (_what, failures, waits, written) => {
    const listeners = process.listeners('exit');
    createLogger({ level: 'info' }).info('late');
    const wait = jest.spyOn(Atomics, 'wait').mockReturnValue('timed-out');
    const refuse = fail('EAGAIN');
    write = (text) => (failures-- > 0 ? refuse() : writeAll(text));
    for (const end of process.listeners('exit')) {
      if (!listeners.includes(end)) end(0);
    }
    expect([wait.mock.calls.length, messages()]).toEqual([waits, written]);
  });
});
