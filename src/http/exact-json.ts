// A JSON parser that keeps integers of 64 bits exact, and refuses repeated fields.

import { toInt64OfNumber } from './int64.js';

/** A JSON value, in which an int64 is a bigint. */
export type JsonValue =
  null | boolean | number | bigint | string | JsonValue[] | { [name: string]: JsonValue };

/** Deeper nesting is refused, because recursive code could exhaust the stack. */
export const MAX_DEPTH = 512;

/** The text is not JSON, or repeats a field, or is nested too deep. */
export class JsonError extends Error {
  override readonly name = 'JsonError';
}

/**
 * Parses JSON (RFC 8259). `JSON.parse` rounds integers, and drops the first of two fields with one name. Here, a number
 * whose exact value is an integer from -2^63 to 2^63-1 becomes a bigint in every notation (`5`, `5.0`, `50e-1`); every other
 * number becomes a number.
 *
 * @throws JsonError on a syntax error, a repeated field name at any depth, or too deep nesting
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
 * Reads a text in one pass. A reviver of `JSON.parse` also gets the digits of numbers, but it does not see repeated
 * fields, and it is slower than this reader.
 */
class Reader {
  private index = 0;

  constructor(private readonly text: string) {}

  read(): JsonValue {
    const value = this.readValue(0);
    this.skipWhitespace();
    if (this.index < this.text.length) this.fail();
    return value;
  }

  /** @param depth how many objects and arrays surround the value */
  private readValue(depth: number): JsonValue {
    this.skipWhitespace();
    switch (this.text.charCodeAt(this.index)) {
      case QUOTE:
        return this.readString();
      case OPEN_BRACE:
        return this.readObject(depth + 1);
      case OPEN_BRACKET:
        return this.readArray(depth + 1);
      default:
        return this.readNumberOrLiteral();
    }
  }

  private readObject(depth: number): JsonValue {
    const object: Record<string, JsonValue> = {};
    this.open(depth);
    if (this.take(CLOSE_BRACE)) return object;
    do {
      this.skipWhitespace();
      if (this.text.charCodeAt(this.index) !== QUOTE) this.fail();
      const name = this.readString();
      if (Object.hasOwn(object, name)) {
        throw new JsonError(`the field ${JSON.stringify(name)} occurs more than once`);
      }
      if (!this.take(COLON)) this.fail();
      addMember(object, name, this.readValue(depth));
    } while (this.take(COMMA));
    if (!this.take(CLOSE_BRACE)) this.fail();
    return object;
  }

  private readArray(depth: number): JsonValue {
    const array: JsonValue[] = [];
    this.open(depth);
    if (this.take(CLOSE_BRACKET)) return array;
    do {
      array.push(this.readValue(depth));
    } while (this.take(COMMA));
    if (!this.take(CLOSE_BRACKET)) this.fail();
    return array;
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
      return toInt64OfNumber(source) ?? Number(source);
    }
    for (const [word, value] of LITERALS) {
      if (this.text.startsWith(word, this.index)) {
        this.index += word.length;
        return value;
      }
    }
    return this.fail();
  }

  private open(depth: number): void {
    if (depth > MAX_DEPTH) throw new JsonError(`it is nested deeper than ${MAX_DEPTH} levels`);
    this.index++;
  }

  /** Skips white space, and `char` if it comes next. @returns whether it came next */
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

  /** Calls JSON.parse only for its message, which names the problem and its position. */
  private fail(): never {
    try {
      JSON.parse(this.text);
    } catch (error) {
      throw new JsonError((error as SyntaxError).message, { cause: error });
    }
    throw new Error('JSON.parse accepts a text that Reader refuses.');
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
