// The exact value of an integer of 64 bits, from its text.

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const INT64_DIGITS = 19;

const DIGITS = /^-?(?:0|[1-9]\d*)$/;

/** @returns undefined for a text that is not an integer from -2^63 to 2^63-1, in digits without leading zeros */
export function parseInt64(text: string): bigint | undefined {
  return DIGITS.test(text) ? toInt64OfDigits(text) : undefined;
}

/**
 * The exact value of a JSON number, or undefined if it is not an integer from -2^63 to 2^63-1.
 *
 * @param source a number of RFC 8259 section 6, which is not checked
 */
export function toInt64OfNumber(source: string): bigint | undefined {
  if (!/[.eE]/.test(source)) return toInt64OfDigits(source);
  const [mantissa, power = '0'] = source.split(/[eE]/) as [string, string?];
  const [whole, fraction = ''] = mantissa.replace('-', '').split('.') as [string, string?];
  const all = whole + fraction;
  let first = 0;
  while (all[first] === '0') first++;
  if (first === all.length) return 0n;
  let last = all.length;
  while (all[last - 1] === '0') last--;
  // The value is digits × 10^zeros. `digits` has no trailing zeros, so the value is an integer only if zeros >= 0.
  const digits = all.slice(first, last);
  const zeros = Number(power) - fraction.length + (all.length - last);
  // Checked before the digits are written out: 1e999999999 would be a gigabyte.
  if (zeros < 0 || digits.length + zeros > INT64_DIGITS) return undefined;
  return toInt64OfDigits((source.startsWith('-') ? '-' : '') + digits + '0'.repeat(zeros));
}

/** @param digits without leading zeros, with an optional minus sign */
function toInt64OfDigits(digits: string): bigint | undefined {
  // More digits are out of range, and BigInt of a long text is slow.
  if (digits.length > '-'.length + INT64_DIGITS) return undefined;
  const value = BigInt(digits);
  return value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
}
