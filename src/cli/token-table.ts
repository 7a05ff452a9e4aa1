import type { AccessTokenInfo } from '../auth/access-tokens.service.js';
import { tableOf } from './table.js';

/** @returns `live`, `expired` or `revoked` */
export function tokenStatusOf({ revokedAt, expiresAt }: AccessTokenInfo): string {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= Date.now() ? 'expired' : 'live';
}

export function tokenTableOf(tokens: readonly AccessTokenInfo[]): string {
  return tableOf([
    ['ID', 'NAME', 'STATUS', 'CREATED', 'EXPIRES', 'LAST USED'],
    ...tokens.map((token) => [
      token.id,
      token.name,
      tokenStatusOf(token),
      timeOf(token.createdAt),
      timeOf(token.expiresAt),
      timeOf(token.lastUsedAt),
    ]),
  ]);
}

/** To the minute, in UTC: 2026-11-20 14:05Z. */
export function timeOf(date: Date | null): string {
  return date === null ? 'never' : `${date.toISOString().slice(0, 16).replace('T', ' ')}Z`;
}
