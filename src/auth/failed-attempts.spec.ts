import { describe, expect, it } from '@jest/globals';
import { FailedAttempts } from './failed-attempts.js';

const LONG = 'x'.repeat(99);

it('the invalid tokens of an address are forgotten after 10,000 other addresses were seen', () => {
  const attempts = new FailedAttempts(1);
  const recordOthers = (count: number, prefix: string) => {
    for (let i = 0; i < count; i++) attempts.record(`${prefix}.${i >> 8}.${i & 255}`);
  };
  expect(attempts.record('192.0.2.1')).toBeUndefined();
  recordOthers(9999, '198.51');
  expect(attempts.record('192.0.2.1')).toBeDefined();
  recordOthers(10_000, '198.52');
  expect(attempts.record('192.0.2.1')).toBeUndefined();
});

describe('the address of an invalid token', () => {
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
    ['is the same in IPv4 and as ::ffff:…', '::ffff:192.0.2.1', '192.0.2.1'],
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
