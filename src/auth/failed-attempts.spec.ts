import { describe, expect, it } from '@jest/globals';
import { holdClock } from '../../test/setup/time/clock.js';
import { settled } from '../../test/setup/time/settled.js';
import { ErrorCode } from '../errors/error-codes.js';
import type { ServiceError } from '../errors/service-error.js';
import { FailedAttempts } from './failed-attempts.js';

const LIMIT = 3;
const MAX_WAIT_MS = 5000;
const ADDRESS = '192.0.2.1';
const HOUR_MS = 3_600_000;

const limited = (limit = LIMIT) => new FailedAttempts(limit, MAX_WAIT_MS);

const fail = (attempts: FailedAttempts, count: number) => {
  for (let i = 0; i < count; i++) attempts.count(ADDRESS);
};

/** A request whose lookup ends when the test calls one of the functions. */
function send(attempts: FailedAttempts, isNeeded = () => true, address = ADDRESS) {
  const verdict = Promise.withResolvers<object>();
  const request = { state: 'waiting' as unknown };
  const lookUp = () => {
    request.state = 'in flight';
    return verdict.promise;
  };
  attempts.run(address, isNeeded, lookUp).then(
    (result) => (request.state = result),
    (error: unknown) => (request.state = error),
  );
  return Object.assign(request, {
    findValid: () => (verdict.resolve({ name: 'a' }), settled()),
    findInvalid: () => (attempts.count(address), verdict.resolve({}), settled()),
    failToFind: (error: Error) => (verdict.reject(error), settled()),
  });
}

const sendMany = (attempts: FailedAttempts, count: number) =>
  Array.from({ length: count }, () => send(attempts));

const statesOf = (requests: { state: unknown }[]) => requests.map(({ state }) => state);

/** A request whose token is known to be invalid, so that it needs no lookup. */
const sendKnown = (attempts: FailedAttempts) =>
  attempts.run(
    ADDRESS,
    () => false,
    () => Promise.resolve({}),
  );

const TOO_MANY = { code: ErrorCode.tooManyAttempts };
const retryAfter = (seconds: string) => ({ ...TOO_MANY, headers: { 'Retry-After': seconds } });

describe('the limit on wrong tokens of an address', () => {
  const advance = holdClock();

  it('allows as many as it says, and refuses the next without a lookup', async () => {
    const attempts = limited();
    for (let i = 0; i < LIMIT; i++) {
      const request = send(attempts);
      expect(request.state).toBe('in flight');
      await request.findInvalid();
      expect(request.state).toEqual({});
    }
    const refused = send(attempts);
    await settled();
    expect(refused.state).toMatchObject(TOO_MANY);
  });

  it('also applies to a token that needs no lookup because it is known to be invalid', async () => {
    const attempts = limited();
    fail(attempts, LIMIT - 1);
    expect(await sendKnown(attempts)).toBeUndefined();
    for (let i = 0; i < 2; i++) {
      fail(attempts, 1);
      await expect(sendKnown(attempts)).rejects.toMatchObject(TOO_MANY);
    }
  });

  it('does not count tokens that are valid', async () => {
    const attempts = limited();
    for (let i = 0; i < 2 * LIMIT; i++) {
      const request = send(attempts);
      await request.findValid();
      expect(request.state).toEqual({ name: 'a' });
    }
  });

  it('does not count lookups that fail, and gives the request their error', async () => {
    const attempts = limited();
    const away = new Error('the database is away');
    for (let i = 0; i < 2 * LIMIT; i++) {
      const request = send(attempts);
      await request.failToFind(away);
      expect(request.state).toBe(away);
    }
  });

  it('applies to a minute that begins with the first of them, not with the last', async () => {
    const attempts = limited();
    fail(attempts, 1);
    await advance(59_000);
    fail(attempts, LIMIT - 1);
    await advance(999);
    await expect(sendKnown(attempts)).rejects.toMatchObject(TOO_MANY);
    await advance(2);
    expect(await sendKnown(attempts)).toBeUndefined();
    fail(attempts, LIMIT - 1);
    expect(await sendKnown(attempts)).toBeUndefined();
    fail(attempts, 1);
    await expect(sendKnown(attempts)).rejects.toMatchObject(retryAfter('60'));
  });

  it.each([
    ['back', -HOUR_MS],
    ['ahead', HOUR_MS],
  ])('applies to a minute, even if the date is set %s meanwhile', async (_how, change) => {
    const attempts = limited();
    fail(attempts, LIMIT);
    await advance.changeDate(change);
    await expect(sendKnown(attempts)).rejects.toMatchObject(retryAfter('60'));
    await advance(60_001);
    expect(await sendKnown(attempts)).toBeUndefined();
  });

  it('says after how many whole seconds a request is allowed again, at least one', async () => {
    const attempts = limited();
    fail(attempts, LIMIT);
    const seconds: unknown[] = [];
    for (const milliseconds of [0, 999, 1, 58_999, 1]) {
      await advance(milliseconds);
      const refusal: unknown = await sendKnown(attempts).catch((error: unknown) => error);
      seconds.push((refusal as ServiceError).headers?.['Retry-After']);
    }
    expect(seconds).toEqual(['60', '60', '59', '1', '1']);
  });
});

describe('requests of an address whose lookups in flight could use up its limit', () => {
  const advance = holdClock();

  it('wait while lookups in flight and failures together are as many as the limit', () => {
    const attempts = limited();
    fail(attempts, 1);
    const requests = sendMany(attempts, LIMIT);
    expect(statesOf(requests)).toEqual(['in flight', 'in flight', 'waiting']);
  });

  it('do not make requests of other addresses wait', () => {
    const attempts = limited();
    sendMany(attempts, LIMIT + 1);
    expect(send(attempts, undefined, '192.0.2.2').state).toBe('in flight');
  });

  it('take the place of a lookup that found a valid token', async () => {
    const attempts = limited();
    const requests = sendMany(attempts, LIMIT + 2);
    await requests[0]!.findValid();
    const states = [{ name: 'a' }, 'in flight', 'in flight', 'in flight', 'waiting'];
    expect(statesOf(requests)).toEqual(states);
    expect(send(attempts).state).toBe('waiting');
    await requests[1]!.findValid();
    expect(requests[4]!.state).toBe('in flight');
  });

  it('take the place of a lookup that failed', async () => {
    const attempts = limited();
    const requests = sendMany(attempts, LIMIT + 1);
    await requests[0]!.failToFind(new Error('the database is away'));
    expect(requests[LIMIT]!.state).toBe('in flight');
  });

  it('are refused as soon as all lookups have found wrong tokens', async () => {
    const attempts = limited();
    const requests = sendMany(attempts, LIMIT + 2);
    for (let i = 0; i < LIMIT - 1; i++) await requests[i]!.findInvalid();
    expect(statesOf(requests.slice(LIMIT))).toEqual(['waiting', 'waiting']);
    await requests[LIMIT - 1]!.findInvalid();
    expect(statesOf(requests.slice(LIMIT))).toMatchObject([TOO_MANY, TOO_MANY]);
  });

  it('are not refused if another request had the same token checked meanwhile', async () => {
    const attempts = limited(1);
    const other = send(attempts);
    let isNeeded = true;
    const request = send(attempts, () => isNeeded);
    isNeeded = false;
    await other.findInvalid();
    expect(request.state).toBeUndefined();
  });

  it.each([
    ['', 0],
    [', also if the date is set back', -HOUR_MS],
    [', also if the date is set ahead', HOUR_MS],
  ])('are refused if they still have to wait after the longest time%s', async (_how, change) => {
    const attempts = limited(1);
    const requests = sendMany(attempts, 4);
    await advance.changeDate(change);
    await advance(MAX_WAIT_MS - 1);
    await requests[0]!.findValid();
    expect(statesOf(requests.slice(1))).toEqual(['in flight', 'waiting', 'waiting']);
    await advance(1);
    await requests[1]!.findValid();
    const overloaded = expect.objectContaining({ code: ErrorCode.overloaded });
    expect(statesOf(requests.slice(2))).toEqual(['in flight', overloaded]);
  });

  it('leave nothing behind when no lookup is in flight', async () => {
    const attempts = limited(1);
    const requests = sendMany(attempts, 2);
    expect(attempts['lookUps'].size).toBe(1);
    for (const request of requests) await request.findValid();
    expect(attempts['lookUps'].size).toBe(0);
  });
});
