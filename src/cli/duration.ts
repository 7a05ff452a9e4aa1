import { InvalidArgumentError } from 'commander';

const UNITS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** @returns such as "59 minutes", in the largest unit that needs no fraction */
export function describeDuration(milliseconds: number): string {
  const [name, unit] = Object.entries(UNIT_NAMES)
    .map(([letter, name]) => [name, UNITS[letter]!] as const)
    .findLast(([, unit]) => milliseconds % unit === 0)!;
  const count = milliseconds / unit;
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

const UNIT_NAMES = { s: 'second', m: 'minute', h: 'hour', d: 'day', w: 'week' };

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
