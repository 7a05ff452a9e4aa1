import { describe, expect, it } from '@jest/globals';
import { holdClock } from '../../test/setup/time/clock.js';
import type { Caller } from './caller.js';
import { VerdictCache } from './verdict-cache.js';

const CALLER: Caller = { name: 'a', tokenId: '1', expiresAt: undefined };
const MAX_AGE_MS = 4000;
const SIZE = 10_000;
const HOUR_MS = 3_600_000;

const setValid = (cache: VerdictCache, caller = CALLER, token = 'token') =>
  cache.setValid(token, caller, performance.now());

describe('the verdict that a token is valid', () => {
  const advance = holdClock();

  it('is used for its own token only', () => {
    const cache = new VerdictCache();
    const verdict = setValid(cache);
    expect(cache.get('token')).toBe(verdict);
    expect(verdict.caller).toBe(CALLER);
    expect(cache.get('other')).toBeUndefined();
    expect(cache.isInvalid('token')).toBe(false);
  });

  it.each([
    ['back', -HOUR_MS],
    ['ahead', HOUR_MS],
  ])('is used for four seconds, even if the date is set %s meanwhile', async (_how, change) => {
    const cache = new VerdictCache();
    const verdict = setValid(cache);
    await advance.changeDate(change);
    await advance(MAX_AGE_MS - 1);
    expect(cache.get('token')).toBe(verdict);
    await advance(1);
    expect(cache.get('token')).toBeUndefined();
  });

  it('is not used any more once the token expires', async () => {
    const cache = new VerdictCache();
    const verdict = setValid(cache, { ...CALLER, expiresAt: Date.now() + 1000 });
    await advance(999);
    expect(cache.get('token')).toBe(verdict);
    await advance(1);
    expect(cache.get('token')).toBeUndefined();
  });

  it('is remembered for as long as the token is not found invalid', async () => {
    const cache = new VerdictCache();
    expect(cache.wasValid('token')).toBe(false);
    setValid(cache, { ...CALLER, expiresAt: Date.now() + 1000 });
    expect(cache.wasValid('token')).toBe(true);
    await advance(24 * 3600_000);
    expect(cache.wasValid('token')).toBe(true);
    cache.setInvalid('token');
    expect(cache.wasValid('token')).toBe(false);
  });

  it('keeps when the use of the token was stored, so that it is not stored again after each lookup', () => {
    const cache = new VerdictCache();
    const verdict = setValid(cache);
    expect(verdict.useRecordedAt).toBe(-Infinity);
    verdict.useRecordedAt = 1234;
    expect(setValid(cache).useRecordedAt).toBe(1234);
    expect(setValid(cache, CALLER, 'other').useRecordedAt).toBe(-Infinity);
  });

  it('is kept for the 10,000 tokens that were used last', () => {
    const cache = new VerdictCache();
    const now = performance.now();
    for (let i = 0; i < SIZE; i++) cache.setValid(`token ${i}`, CALLER, now);
    expect(cache.get('token 0')).toBeDefined();
    setValid(cache, CALLER, 'one more');
    expect(cache.get('token 0')).toBeDefined();
    expect(cache.wasValid('token 1')).toBe(false);
    expect(cache.get('token 2')).toBeDefined();
  });
});

describe('the verdict that a token is not valid', () => {
  const advance = holdClock();

  it('is used for its own token only', () => {
    const cache = new VerdictCache();
    cache.setInvalid('token');
    expect(cache.isInvalid('token')).toBe(true);
    expect(cache.isInvalid('other')).toBe(false);
  });

  it.each([
    ['back', -HOUR_MS],
    ['ahead', HOUR_MS],
  ])('is used for four seconds, even if the date is set %s meanwhile', async (_how, change) => {
    const cache = new VerdictCache();
    cache.setInvalid('token');
    await advance.changeDate(change);
    await advance(MAX_AGE_MS - 1);
    expect(cache.isInvalid('token')).toBe(true);
    await advance(2);
    expect(cache.isInvalid('token')).toBe(false);
  });

  it('applies at once to a token that was valid', () => {
    const cache = new VerdictCache();
    setValid(cache);
    cache.setInvalid('token');
    expect(cache.get('token')).toBeUndefined();
    expect(cache.isInvalid('token')).toBe(true);
  });

  it('is kept for 10,000 tokens, which displace no valid token', () => {
    const cache = new VerdictCache();
    setValid(cache, CALLER, 'valid');
    for (let i = 0; i <= SIZE; i++) cache.setInvalid(`token ${i}`);
    expect(cache.isInvalid('token 0')).toBe(false);
    expect(cache.isInvalid('token 1')).toBe(true);
    expect(cache.get('valid')).toBeDefined();
  });
});
