/**
 * JSON without loss (RFC 8259). What `JSON.parse` does silently, this does not: it rounds numbers, and of two
 * members with one name it forgets the first.
 */
export type JsonValue =
  null | boolean | number | bigint | string | JsonValue[] | { [name: string]: JsonValue };

/** Deeper nesting is refused: whatever walks the value must not run out of stack. */
export const MAX_DEPTH = 512;

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
  return new Reader(text).read();
}

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** RFC 8259 section 6. */
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

const LITERALS: readonly (readonly [string, JsonValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];

/**
 * Reads a text from its first character to its last, once. A reviver of `JSON.parse` would get the characters of
 * numbers, too, but never sees repeated members, and takes longer than everything here together.
 */
class Reader {
  private index = 0;
  private depth = 0;

  constructor(private readonly text: string) {}

  read(): JsonValue {
    const value = this.readValue();
    this.skipWhitespace();
    if (this.index < this.text.length) this.fail();
    return value;
  }

  private readValue(): JsonValue {
    this.skipWhitespace();
    switch (this.text.charCodeAt(this.index)) {
      case QUOTE:
        return this.readString();
      case OPEN_BRACE:
        return this.readObject();
      case OPEN_BRACKET:
        return this.readArray();
      default:
        return this.readNumberOrLiteral();
    }
  }

  private readObject(): JsonValue {
    const object: Record<string, JsonValue> = {};
    this.open();
    if (this.take(CLOSE_BRACE)) return this.close(object);
    do {
      this.skipWhitespace();
      if (this.text.charCodeAt(this.index) !== QUOTE) this.fail();
      const name = this.readString();
      if (Object.hasOwn(object, name)) {
        throw new JsonError(`the member ${JSON.stringify(name)} is there more than once`);
      }
      if (!this.take(COLON)) this.fail();
      addMember(object, name, this.readValue());
    } while (this.take(COMMA));
    if (!this.take(CLOSE_BRACE)) this.fail();
    return this.close(object);
  }

  private readArray(): JsonValue {
    const array: JsonValue[] = [];
    this.open();
    if (this.take(CLOSE_BRACKET)) return this.close(array);
    do {
      array.push(this.readValue());
    } while (this.take(COMMA));
    if (!this.take(CLOSE_BRACKET)) this.fail();
    return this.close(array);
  }

  private readString(): string {
    const start = this.index;
    let isEscaped = false;
    for (let i = start + 1; i < this.text.length; i++) {
      const char = this.text.charCodeAt(i);
      if (char === QUOTE) {
        this.index = i + 1;
        return isEscaped ? this.unescape(start) : this.text.slice(start + 1, i);
      }
      if (char === BACKSLASH) {
        isEscaped = true;
        i++;
      } else if (char < SPACE) {
        break;
      }
    }
    return this.fail();
  }

  private unescape(start: number): string {
    try {
      return JSON.parse(this.text.slice(start, this.index)) as string;
    } catch {
      return this.fail();
    }
  }

  private readNumberOrLiteral(): JsonValue {
    NUMBER.lastIndex = this.index;
    if (NUMBER.test(this.text)) {
      const source = this.text.slice(this.index, NUMBER.lastIndex);
      this.index = NUMBER.lastIndex;
      return toInt64(source) ?? Number(source);
    }
    for (const [word, value] of LITERALS) {
      if (this.text.startsWith(word, this.index)) {
        this.index += word.length;
        return value;
      }
    }
    return this.fail();
  }

  private open(): void {
    this.index++;
    this.depth++;
    if (this.depth > MAX_DEPTH) {
      throw new JsonError(`it is nested deeper than ${MAX_DEPTH} levels`);
    }
  }

  private close<Value>(value: Value): Value {
    this.depth--;
    return value;
  }

  /** Goes past this character, if it comes next. */
  private take(char: number): boolean {
    this.skipWhitespace();
    if (this.text.charCodeAt(this.index) !== char) return false;
    this.index++;
    return true;
  }

  private skipWhitespace(): void {
    for (;;) {
      const char = this.text.charCodeAt(this.index);
      if (char !== SPACE && char !== LINE_FEED && char !== CARRIAGE_RETURN && char !== TAB) return;
      this.index++;
    }
  }

  /** `JSON.parse` tells people best what is wrong, and where. */
  private fail(): never {
    try {
      JSON.parse(this.text);
    } catch (error) {
      throw new JsonError((error as SyntaxError).message, { cause: error });
    }
    throw new Error('JSON.parse takes a text that Reader does not take.');
  }
}

function addMember(object: Record<string, JsonValue>, name: string, value: JsonValue): void {
  if (name === '__proto__') {
    // An assignment would set the prototype.
    Object.defineProperty(object, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else {
    object[name] = value;
  }
}

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const INT64_DIGITS = 19;

/**
 * The exact value of a JSON number, if it is an int64.
 *
 * @param source its characters: a JSON number, as RFC 8259 section 6 writes them
 */
function toInt64(source: string): bigint | undefined {
  if (!/[.eE]/.test(source)) return toInt64OfDigits(source);
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
  return toInt64OfDigits((source.startsWith('-') ? '-' : '') + digits + '0'.repeat(zeros));
}

/** @param digits without leading zeros, perhaps behind a minus sign */
function toInt64OfDigits(digits: string): bigint | undefined {
  if (digits.length > '-'.length + INT64_DIGITS) return undefined;
  const value = BigInt(digits);
  return value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
}
