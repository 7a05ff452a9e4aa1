import { ValidateBy } from 'class-validator';

/** An integer from -2^63 to 2^63-1: the JSON reader makes a bigint of exactly these numbers. */
export function IsInt64(): PropertyDecorator {
  return rule(
    'isInt64',
    (value) => typeof value === 'bigint',
    (value) => {
      const expected = 'must be an integer from -9223372036854775808 to 9223372036854775807';
      return typeof value === 'number'
        ? `${expected}, which this number is not`
        : `${expected}, not ${jsonTypeOf(value)}`;
    },
  );
}

/**
 * Text that Postgres stores exactly as it was sent. A `text` column cannot hold NUL, and UTF-8 cannot encode half of a
 * surrogate pair.
 */
export function IsExactText(): PropertyDecorator {
  return rule(
    'isExactText',
    (value) => typeof value === 'string' && !value.includes('\0') && value.isWellFormed(),
    (value) => {
      if (typeof value !== 'string') return `must be a string, not ${jsonTypeOf(value)}`;
      return value.includes('\0')
        ? 'contains the character U+0000, which cannot be stored'
        : 'contains half of a surrogate pair, which is not a character';
    },
  );
}

/** @param problemOf returns the message about an invalid value; the name of the property is put before it */
function rule(
  name: string,
  isValid: (value: unknown) => boolean,
  problemOf: (value: unknown) => string,
): PropertyDecorator {
  return ValidateBy({
    name,
    validator: {
      validate: isValid,
      defaultMessage: (args) => {
        const value: unknown = args?.value;
        return `$property ${value === undefined ? 'is missing' : problemOf(value)}`;
      },
    },
  });
}

function jsonTypeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  return typeof value === 'bigint' ? 'a number' : `a ${typeof value}`;
}
