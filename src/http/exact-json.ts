/**
 * JSON without loss. `JSON.parse` decides what is JSON (RFC 8259); what it does silently, this does not:
 * it rounds numbers, and of two members with one name it forgets the first.
 */
export type JsonValue =
  null | boolean | number | bigint | string | JsonValue[] | { [name: string]: JsonValue };

/** Deeper nesting is refused: whatever walks the value must not run out of stack. */
export const MAX_DEPTH = 512;

/** `JSON.parse` as ECMAScript 2026 has it and TypeScript's library does not yet: with a primitive's characters. */
const parseWithSource = JSON.parse as (
  text: string,
  reviver: (name: string, value: JsonValue, context: { readonly source?: string }) => JsonValue,
) => JsonValue;

/** A text that is not JSON, or from which a value could not be read without loss. */
export class JsonError extends Error {
  override readonly name = 'JsonError';
}

/**
 * Parses JSON. A number whose exact value is an integer from -2^63 to 2^63-1 becomes a bigint, however
 * it is written (`5`, `5.0`, `50e-1`); every other number becomes a number.
 *
 * @throws JsonError on a syntax error, a repeated member name at any depth, or too deep nesting
 */
export function parseExactJson(text: string): JsonValue {
  checkStructure(text);
  try {
    return parseWithSource(text, (_name, value, { source }) =>
      typeof value === 'number' ? (toInt64(value, source!) ?? value) : value,
    );
  } catch (error) {
    throw new JsonError((error as SyntaxError).message, { cause: error });
  }
}

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Refuses what `JSON.parse` lets pass, or cannot take. Needs no valid JSON: where the text is broken,
 * `JSON.parse` says so afterwards.
 */
function checkStructure(text: string): void {
  // The member names of every object that is open, undefined for an array.
  const open: (Set<string> | undefined)[] = [];
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE: {
        const end = endOfString(text, i);
        const names = open.at(-1);
        if (names !== undefined && isFollowedByColon(text, end)) {
          const name = decodeString(text.slice(i, end));
          if (names.has(name)) {
            throw new JsonError(`the member ${JSON.stringify(name)} is there more than once`);
          }
          names.add(name);
        }
        i = end - 1;
        break;
      }
      case OPEN_BRACE:
        open.push(new Set());
        break;
      case OPEN_BRACKET:
        open.push(undefined);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        open.pop();
        break;
    }
    if (open.length > MAX_DEPTH) {
      throw new JsonError(`it is nested deeper than ${MAX_DEPTH} levels`);
    }
  }
}

/** The index behind the closing quote, or the end of the text where there is none. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === BACKSLASH) i++;
    else if (char === QUOTE) return i + 1;
  }
  return text.length;
}

function isFollowedByColon(text: string, index: number): boolean {
  while (isWhitespace(text.charCodeAt(index))) index++;
  return text.charCodeAt(index) === COLON;
}

function isWhitespace(char: number): boolean {
  return char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09;
}

/** Two names may be written differently and still be one: "id" is "\u0069d". */
function decodeString(literal: string): string {
  if (!literal.includes('\\')) return literal.slice(1, -1);
  try {
    return JSON.parse(literal) as string;
  } catch (error) {
    throw new JsonError((error as SyntaxError).message, { cause: error });
  }
}

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const INT64_DIGITS = 19;

/**
 * The exact value of a JSON number, if it is an int64.
 *
 * @param rounded what JavaScript made of it
 * @param source its characters: a JSON number, as RFC 8259 section 6 writes them
 */
function toInt64(rounded: number, source: string): bigint | undefined {
  // The common case: up to 15 characters cannot have been rounded if they are all digits.
  if (source.length <= 15 && Number.isInteger(rounded) && !/[.eE]/.test(source)) {
    return BigInt(rounded);
  }
  const [mantissa, power = '0'] = source.split(/[eE]/) as [string, string?];
  const [whole, fraction = ''] = mantissa.replace('-', '').split('.') as [string, string?];
  const all = whole + fraction;
  let first = 0;
  while (all[first] === '0') first++;
  if (first === all.length) return 0n;
  let last = all.length;
  while (all[last - 1] === '0') last--;
  // The value is digits × 10^zeros. Without trailing zeros in `digits`, it is an integer if zeros >= 0.
  const digits = all.slice(first, last);
  const zeros = Number(power) - fraction.length + (all.length - last);
  // Checked before the number is built: 1e999999999 would be a gigabyte of digits.
  if (zeros < 0 || digits.length + zeros > INT64_DIGITS) return undefined;
  const value = BigInt((source.startsWith('-') ? '-' : '') + digits + '0'.repeat(zeros));
  return value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
}
