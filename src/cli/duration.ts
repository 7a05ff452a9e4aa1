import { InvalidArgumentError } from 'commander';

const UNITS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/**
 * @returns milliseconds
 * @throws InvalidArgumentError
 */
export function parseDuration(text: string): number {
  const match = /^(\d{1,4})([smhdw])$/.exec(text === '0' ? '0s' : text);
  if (match === null) {
    throw new InvalidArgumentError(
      'Use a number of up to four digits and a unit, such as 30s, 15m, 24h, 90d or 52w.',
    );
  }
  return Number(match[1]) * UNITS[match[2]!]!;
}
