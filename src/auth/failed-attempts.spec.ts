import { beforeEach, describe, expect, it } from '@jest/globals';
import { holdClock } from '../../test/setup/time/clock.js';
import { FailedAttempts } from './failed-attempts.js';

const LIMIT = 3;
const MINUTE_MS = 60_000;
const HERE = '192.0.2.1';
const LONG = 'x'.repeat(99);

describe('the limit on the invalid tokens of an address', () => {
  let attempts: FailedAttempts;
  const advance = holdClock();

  beforeEach(() => {
    attempts = new FailedAttempts(LIMIT);
    for (let i = 0; i < LIMIT; i++) expect(attempts.record(HERE)).toBeUndefined();
  });

  it('applies to a minute that begins with the first of them, and says how many seconds are left', async () => {
    expect(attempts.record(HERE)).toBe(60);
    await advance(MINUTE_MS / 2 + 1);
    expect(attempts.record(HERE)).toBe(30);
    await advance(MINUTE_MS / 2 - 2);
    expect(attempts.record(HERE)).toBe(1);
    await advance(2);
    expect(attempts.record(HERE)).toBeUndefined();
  });

  it.each([
    ['back', -MINUTE_MS],
    ['ahead', MINUTE_MS],
  ])('does not change if the date is set %s', async (_how, change) => {
    await advance.changeDate(change);
    expect(attempts.record(HERE)).toBe(60);
  });

  it('is forgotten after 10,000 others were seen', () => {
    for (let i = 0; i < 9999; i++) attempts.record(`198.51.${i >> 8}.${i & 255}`);
    expect(attempts.record(HERE)).toBe(60);
    for (let i = 0; i < 10_000; i++) attempts.record(`198.52.${i >> 8}.${i & 255}`);
    expect(attempts.record(HERE)).toBeUndefined();
  });
});

describe('the address of a invalid token', () => {
  /** Whether invalid tokens from one address count for the other one. */
  function isShared(one: string, other: string): boolean {
    const attempts = new FailedAttempts(1);
    attempts.record(one);
    return attempts.record(other) !== undefined;
  }

  it.each([
    ['is counted without its port, which some proxies add', '203.0.113.120:471', '203.0.113.120'],
    ['may stand in brackets', '[2001:db8::1]', '2001:db8::1'],
    ['may stand in brackets before a port', '[2001:DB8::1]:4711', '2001:db8::1'],
    ['is counted by its /64 network', '2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff'],
    ['is the same if an IPv6 address contains it', '::ffff:192.0.2.1', '192.0.2.1'],
    ['may be any text', 'unknown', 'unknown'],
    ['is cut after 100 characters, to take little memory', `${LONG}xa`, `${LONG}xb`],
  ])('%s', (_, one, other) => {
    expect([isShared(one, other), isShared(other, one)]).toEqual([true, true]);
  });

  it.each([
    ['its neighbor', '192.0.2.1', '192.0.2.2'],
    ['one with the same digits', '1.11.2.3', '11.1.2.3'],
    ['its neighbor in IPv6', '::ffff:192.0.2.1', '::ffff:192.0.2.2'],
    ['the next /64 network', '2001:db8:1:2::1', '2001:db8:1:3::1'],
    ['other text', 'unknown', ''],
    ['other text with an address in it', 'x192.0.2.1:80x', 'x192.0.2.1:81x'],
  ])('does not count for %s', (_, one, other) => {
    expect([isShared(one, other), isShared(other, one)]).toEqual([false, false]);
  });
});
