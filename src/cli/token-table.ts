import type { AccessTokenInfo } from '../auth/access-tokens.service.js';

/** @returns `live`, `expired` or `revoked` */
export function statusOf({ revokedAt, expiresAt }: AccessTokenInfo): string {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= Date.now() ? 'expired' : 'live';
}

export function tableOf(tokens: readonly AccessTokenInfo[]): string {
  const rows = [
    ['ID', 'NAME', 'STATUS', 'CREATED', 'EXPIRES', 'LAST USED'],
    ...tokens.map((token) => [
      token.id,
      token.name,
      statusOf(token),
      timeOf(token.createdAt),
      timeOf(token.expiresAt),
      timeOf(token.lastUsedAt),
    ]),
  ];
  const widths = rows[0]!.map((_, column) =>
    // Math.max(...) of a long list would overflow the stack.
    rows.reduce((width, row) => Math.max(width, row[column]!.length), 0),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** To the minute, in UTC: 2026-11-20 14:05Z. */
function timeOf(date: Date | null): string {
  return date === null ? 'never' : `${date.toISOString().slice(0, 16).replace('T', ' ')}Z`;
}
