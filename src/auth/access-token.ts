import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** The name of the token that a start with the embedded Postgres makes. */
export const DEVELOPMENT = 'development';

/**
 * The format of an access token: `plantstore_`, 32 random bytes in base62 (43 characters), and the
 * CRC-32 of both in base62 (6 characters). The prefix lets secret scanners find a leaked token; the
 * checksum exposes a mistyped or invented token without a lookup.
 */
const ACCESS_TOKEN_PATTERN = /^plantstore_[0-9A-Za-z]{49}$/;

const PREFIX = 'plantstore_';
const RANDOM_BYTES = 32;
const RANDOM_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export function generateAccessToken(): string {
  const random = BigInt('0x' + randomBytes(RANDOM_BYTES).toString('hex'));
  const withoutChecksum = PREFIX + toBase62(random, RANDOM_LENGTH);
  return withoutChecksum + checksumOf(withoutChecksum);
}

/** Whether a text may contain a token, or a part of one that was mistyped or cut off. Such a text must not be printed. */
export function mayContainAccessToken(text: string): boolean {
  return text.toLowerCase().includes(PREFIX);
}

/** Whether the format and the checksum are right; the token may still be unknown, expired or revoked. */
export function isWellFormedAccessToken(token: string): boolean {
  return (
    ACCESS_TOKEN_PATTERN.test(token) &&
    token.slice(-CHECKSUM_LENGTH) === checksumOf(token.slice(0, -CHECKSUM_LENGTH))
  );
}

/** SHA-256: a slow hash would protect nothing, because a token has 256 random bits. */
export function hashAccessToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

function checksumOf(text: string): string {
  return toBase62(BigInt(crc32(text)), CHECKSUM_LENGTH);
}

function toBase62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) {
    text = BASE62[Number(rest % 62n)]! + text;
  }
  return text;
}
