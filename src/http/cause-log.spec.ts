import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import { ErrorCode } from '../errors/error-codes.js';
import { issuerUnavailable, ServiceError } from '../errors/service-error.js';
import { CauseLog } from './cause-log.js';

interface Entry {
  readonly level: number;
  readonly error: number;
  readonly count: number;
  readonly msg: string;
  readonly err: { readonly message: string; readonly stack: string };
}

describe('the log of causes', () => {
  let entries: Entry[];
  let log: CauseLog;
  const written = () => entries.map(({ error, count, err }) => [error, count, err.message]);
  const fail = (cause: string) =>
    log.add(
      new ServiceError(ErrorCode.databaseUnavailable, 'It is away.', { cause: new Error(cause) }),
    );

  beforeEach(() => {
    entries = [];
    const write = (line: string) => void entries.push(JSON.parse(line) as Entry);
    log = new CauseLog(pino({}, { write }));
    jest.useFakeTimers();
  });
  afterEach(() => void jest.useRealTimers());

  it('has the first failure at once, with the number, the message and the stack of its cause', () => {
    fail('cut');
    expect(entries).toEqual([
      expect.objectContaining({
        level: 50,
        error: 50300,
        count: 1,
        msg: 'It is away.',
        err: expect.objectContaining({ message: 'cut', stack: expect.stringContaining('at ') }),
      }),
    ]);
  });

  it('has one entry a second in an outage, with the count since the last one and the latest cause', () => {
    for (const cause of ['a', 'b', 'c']) fail(cause);
    jest.advanceTimersByTime(999);
    expect(written()).toEqual([[50300, 1, 'a']]);
    jest.advanceTimersByTime(1);
    expect(written()).toEqual([
      [50300, 1, 'a'],
      [50300, 2, 'c'],
    ]);
    fail('d');
    jest.advanceTimersByTime(999);
    expect(written()).toHaveLength(2);
    jest.advanceTimersByTime(1);
    expect(written().slice(2)).toEqual([[50300, 1, 'd']]);
  });

  it('has no entry while nothing fails, and the next failure at once again', () => {
    fail('a');
    jest.advanceTimersByTime(10_000);
    expect(written()).toEqual([[50300, 1, 'a']]);
    fail('b');
    expect(written().slice(1)).toEqual([[50300, 1, 'b']]);
  });

  it('leaves out the advice to clients', () => {
    log.add(issuerUnavailable());
    expect(entries.map(({ msg }) => msg)).toEqual([
      'The token cannot be checked now, because the identity provider does not respond.',
    ]);
  });

  it('counts each error number for itself', () => {
    fail('database');
    log.add(issuerUnavailable(new Error('issuer')));
    log.add(issuerUnavailable(new Error('issuer again')));
    jest.advanceTimersByTime(1000);
    expect(written()).toEqual([
      [50300, 1, 'database'],
      [50303, 1, 'issuer'],
      [50303, 1, 'issuer again'],
    ]);
  });
});

it('does not keep a process alive that has nothing else to do', () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const before = timers();
  new CauseLog(pino({ enabled: false })).add(issuerUnavailable());
  expect(timers()).toBe(before);
});
