import { ValidateBy } from 'class-validator';
import { jsonTypeOf } from './json-type-of.js';

/**
 * Text that is stored as it was sent. Postgres text cannot hold NUL, and UTF-8 has no form for half of a
 * surrogate pair: both are refused, because a repaired text is not the text that was sent.
 */
export function IsExactText(): PropertyDecorator {
  return ValidateBy({
    name: 'isExactText',
    validator: {
      validate: (value) =>
        typeof value === 'string' && !value.includes('\0') && value.isWellFormed(),
      defaultMessage: (args) => {
        const value: unknown = args?.value;
        if (value === undefined) return '$property is missing';
        if (typeof value !== 'string')
          return `$property must be a string, not ${jsonTypeOf(value)}`;
        return value.includes('\0')
          ? '$property contains the character U+0000, which cannot be stored'
          : '$property contains half of a surrogate pair, which is not a character';
      },
    },
  });
}
