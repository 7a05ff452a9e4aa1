import { describe, expect, it } from '@jest/globals';
import { describeDuration, parseDuration } from './duration.js';

const HOUR_MS = 3_600_000;

describe('a duration', () => {
  it.each([
    ['0', 0],
    ['0s', 0],
    ['30s', 30_000],
    ['15m', HOUR_MS / 4],
    ['24h', 24 * HOUR_MS],
    ['90d', 90 * 24 * HOUR_MS],
    ['52w', 364 * 24 * HOUR_MS],
    ['9999w', 69_993 * 24 * HOUR_MS],
  ])('%s is %d ms', (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
  });

  it.each([
    ['1s', '1 second'],
    ['90s', '90 seconds'],
    ['60s', '1 minute'],
    ['59m', '59 minutes'],
    ['24h', '1 day'],
    ['14d', '2 weeks'],
  ])('%s is described as %s', (text, words) => {
    expect(describeDuration(parseDuration(text))).toBe(words);
  });

  it.each(['', '1', '00', 's', '-1s', '1.5h', '1 h', '1H', '1y', '1ms', '10000s', '1h30m', 'soon'])(
    '%j is refused with a text that names the accepted forms',
    (text) => {
      expect(() => parseDuration(text)).toThrow(
        'Use a number of up to four digits and a unit, such as 30s, 15m, 24h, 90d or 52w.',
      );
    },
  );
});
