import { describe, expect, it } from '@jest/globals';
import { FailedAttempts } from './failed-attempts.js';

const LONG = 'x'.repeat(99);

/** Whether the address may send no more tokens: the next one is refused without a lookup. */
async function isRefused(attempts: FailedAttempts, address: string): Promise<boolean> {
  const lookUp = () => Promise.resolve({});
  const needed = () => true;
  const result = await attempts.run(address, needed, lookUp).catch(() => undefined);
  return result === undefined;
}

/** Whether a wrong token from one address counts for the other one, in either direction. */
async function isShared(one: string, other: string): Promise<boolean[]> {
  const attempts = new FailedAttempts(1, 0);
  attempts.count(one);
  const reverse = new FailedAttempts(1, 0);
  reverse.count(other);
  return [await isRefused(attempts, other), await isRefused(reverse, one)];
}

describe('the address of a wrong token', () => {
  it.each([
    [
      'is counted without its port, which some proxies add',
      '203.100.113.120:471',
      '203.100.113.120',
    ],
    ['may stand in brackets', '[2001:db8::1]', '2001:db8::1'],
    ['may stand in brackets before a port', '[2001:DB8::1]:4711', '2001:db8::1'],
    ['is counted by its /64 network', '2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff'],
    ['is the same if an IPv6 address contains it', '::ffff:192.0.2.1', '192.0.2.1'],
    ['is the same if it is contained and has a port', '[::ffff:192.0.2.1]:80', '192.0.2.1'],
    ['may be any text', 'unknown', 'unknown'],
    ['is cut after 100 characters, to take little memory', `${LONG}xa`, `${LONG}xb`],
  ])('%s', async (_, one, other) => {
    expect(await isShared(one, other)).toEqual([true, true]);
  });

  it.each([
    ['its neighbor', '192.0.2.1', '192.0.2.2'],
    ['one with the same digits', '1.11.2.3', '11.1.2.3'],
    ['its neighbor in IPv6', '::ffff:192.0.2.1', '::ffff:192.0.2.2'],
    ['the next /64 network', '2001:db8:1:2::1', '2001:db8:1:3::1'],
    ['text that is no address', '2001:db8:1:2::1', 'unknown'],
    ['other text', 'unknown', 'hidden'],
    ['an empty text', 'unknown', ''],
    ['text that differs in the 100th character', `${LONG}a`, `${LONG}b`],
    ['other text that ends with an address', 'x192.0.2.1:80', 'x192.0.2.1:81'],
    ['other text that begins with an address', '192.0.2.1:80x', '192.0.2.1:81x'],
  ])('does not count for %s', async (_, one, other) => {
    expect(await isShared(one, other)).toEqual([false, false]);
  });

  it('is forgotten after 10,000 others were seen', async () => {
    const attempts = new FailedAttempts(1, 0);
    const address = (i: number) => `198.51.${i >> 8}.${i & 255}`;
    for (let i = 0; i < 10_000; i++) attempts.count(address(i));
    expect(await isRefused(attempts, address(0))).toBe(true);
    attempts.count(address(10_000));
    expect(await isRefused(attempts, address(10_000))).toBe(true);
    expect(await isRefused(attempts, address(0))).toBe(true);
    expect(await isRefused(attempts, address(1))).toBe(false);
  });
});
