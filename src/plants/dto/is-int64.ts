import { ValidateBy } from 'class-validator';
import { jsonTypeOf } from './json-type-of.js';

/**
 * An integer from -2^63 to 2^63-1. The JSON reader turns exactly those numbers into a bigint, so
 * nothing is left to compare here.
 */
export function IsInt64(): PropertyDecorator {
  return ValidateBy({
    name: 'isInt64',
    validator: {
      validate: (value) => typeof value === 'bigint',
      defaultMessage: (args) => {
        const value: unknown = args?.value;
        if (value === undefined) return '$property is missing';
        const expected =
          '$property must be an integer from -9223372036854775808 to 9223372036854775807';
        return typeof value === 'number'
          ? `${expected}; this number is not`
          : `${expected}, not ${jsonTypeOf(value)}`;
      },
    },
  });
}
