import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { tokenStatusOf, tokenTableOf } from './token-table.js';

const CREATED_AT = new Date('2026-11-20T14:05:59Z');

const token = (name: string) => ({
  id: '0123456789ab',
  name,
  createdAt: CREATED_AT,
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
});

describe('the table of tokens', () => {
  it('is as wide as its widest cells', () => {
    expect(tokenTableOf([token('greenhouse'), token('shed')])).toBe(
      [
        'ID            NAME        STATUS  CREATED            EXPIRES  LAST USED',
        '0123456789ab  greenhouse  live    2026-11-20 14:05Z  never    never',
        '0123456789ab  shed        live    2026-11-20 14:05Z  never    never',
      ].join('\n'),
    );
  });

  it('may have 150,000 rows', () => {
    const table = tokenTableOf(Array.from({ length: 150_000 }, (_, i) => token(String(i))));
    const names = table
      .split('\n')
      .slice(1)
      .map((line) => Number(line.split(/ +/)[1]));
    expect(names).toEqual(Array.from({ length: 150_000 }, (_, i) => i));
  });
});

describe('the status of a token', () => {
  afterEach(() => void jest.restoreAllMocks());

  it.each([
    ['without an expiry', null, null, 'live'],
    ['that expires in a millisecond', 1, null, 'live'],
    ['that expires now', 0, null, 'expired'],
    ['that was revoked', null, -1, 'revoked'],
    ['that was revoked and has expired', -1, -2, 'revoked'],
  ])('%s', (_kind, expiresIn, revokedIn, status) => {
    jest.spyOn(Date, 'now').mockReturnValue(CREATED_AT.getTime());
    const at = (offset: number | null) =>
      offset === null ? null : new Date(CREATED_AT.getTime() + offset);
    const row = { ...token('a'), expiresAt: at(expiresIn), revokedAt: at(revokedIn) };
    expect(tokenStatusOf(row)).toBe(status);
  });
});
