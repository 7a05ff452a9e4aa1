import { createInterface } from 'node:readline/promises';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { isWellFormedAccessToken } from './auth/access-token.js';
import type { AccessTokenInfo, AccessTokensService } from './auth/access-tokens.service.js';

/** Runs an action with the service class that the guard uses. */
type WithTokens = (action: (tokens: AccessTokensService) => Promise<void>) => Promise<void>;

/** A command that cannot do what it was asked to. The message is for the operator. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** A command that was not understood. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Adds `create`, `list`, `revoke` and `rotate`. Standard output carries results only. */
export function addTokenCommands(program: Command, withTokens: WithTokens): void {
  program
    .command('create')
    .description('print a new token, which is shown only this once')
    .argument('<name>', 'who will use it, such as "greenhouse"')
    .option(
      '--expires <duration>',
      'how long it works, such as 90d (default: until it is revoked)',
      parseLifetime,
    )
    .action((name: string, options: { expires?: number }) => {
      checkName(name);
      return withTokens(async (tokens) => {
        print(await tokens.create(name, options.expires));
      });
    });

  program
    .command('list')
    .description('show all tokens; never the tokens themselves')
    .option('--json', 'as JSON, for programs')
    .action((options: { json?: boolean }) =>
      withTokens(async (tokens) => {
        const list = (await tokens.list()).map((token) => ({ ...token, status: statusOf(token) }));
        print(options.json === true ? JSON.stringify(list, null, 2) : tableOf(list));
      }),
    );

  program
    .command('revoke')
    .description('end a token, or all of a name, for good')
    .argument('<name|id|token>', 'as "token list" shows it; a token that leaked may be pasted')
    .option('--yes', 'do not ask')
    .action((nameOrId: string, options: { yes?: boolean }) =>
      withTokens(async (tokens) => {
        const live = isWellFormedAccessToken(nameOrId)
          ? await tokens.findLiveByToken(nameOrId)
          : await tokens.findLive(nameOrId);
        if (live.length === 0) throw new CommandError(noLiveToken(nameOrId));
        if (options.yes !== true) {
          const names = live.map(({ id, name }) => `${name} (${id})`).join(', ');
          await confirm(`This ends ${names} within five seconds, and cannot be undone.`);
        }
        await tokens.revoke(live.map(({ id }) => id));
        tell(`Revoked ${live.map(({ id }) => id).join(', ')}.`);
      }),
    );

  program
    .command('rotate')
    .description('print a new token for a name; its old ones end after the grace')
    .argument('<name>', 'as "token list" shows it')
    .addOption(
      new Option('--grace <duration>', 'how long the old ones still work, 0 for not at all')
        .argParser(parseDuration)
        .default(parseDuration('24h'), '24h'),
    )
    .option(
      '--expires <duration>',
      'how long the new one works (default: as long as the old one did)',
      parseLifetime,
    )
    .option('--yes', 'do not ask, with a grace below one hour')
    .action((name: string, options: { grace: number; expires?: number; yes?: boolean }) => {
      checkName(name);
      return withTokens(async (tokens) => {
        if (options.grace < GRACE_THAT_ASKS_MS && options.yes !== true) {
          await confirm(`This ends all tokens of ${name} soon, and cannot be undone.`);
        }
        const token = await tokens.rotate(name, options.grace, options.expires);
        if (token === undefined) throw new CommandError(noLiveToken(name));
        print(token);
      });
    });
}

/** A shorter grace may be over before the new token is where it is needed. */
const GRACE_THAT_ASKS_MS = 3_600_000;

/** Says nothing of a token: what is written to a terminal stays there. */
const noLiveToken = (name: string) =>
  TOKEN_INSIDE.test(name)
    ? 'This token is not live. "token list" shows all tokens.'
    : `There is no live token "${name}". "token list" shows all tokens.`;

const TOKEN_INSIDE = /plantstore_[0-9A-Za-z]{49}/;
const NAME = /^(?=.*[\p{L}\p{N}])[\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,100}$/u;

/** Names are shown in lists and logs, so they must be readable, and no tokens. */
function checkName(name: string): void {
  if (TOKEN_INSIDE.test(name)) throw new UsageError('This is a token, not a name.');
  if (!NAME.test(name)) {
    throw new UsageError('A name has 1 to 100 visible characters, a letter or a digit among them.');
  }
}

const UNITS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** @returns milliseconds */
function parseLifetime(text: string): number {
  const lifetime = parseDuration(text);
  if (lifetime === 0) throw new InvalidArgumentError('Such a token would never work.');
  return lifetime;
}

/** @returns milliseconds */
function parseDuration(text: string): number {
  const [, amount, unit] =
    /^(\d{1,4})([smhdw])$/.exec(text) ?? (text === '0' ? ['', '0', 's'] : []);
  if (amount === undefined || unit === undefined) {
    throw new InvalidArgumentError('Use a number and a unit: 30s, 15m, 24h, 90d or 52w.');
  }
  return Number(amount) * UNITS[unit]!;
}

function statusOf({ revokedAt, expiresAt }: AccessTokenInfo): string {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= Date.now() ? 'expired' : 'live';
}

function tableOf(list: readonly (AccessTokenInfo & { status: string })[]): string {
  const rows = [
    ['ID', 'NAME', 'STATUS', 'CREATED', 'EXPIRES', 'LAST USED'],
    ...list.map((token) => [
      token.id,
      token.name,
      token.status,
      timeOf(token.createdAt),
      timeOf(token.expiresAt),
      timeOf(token.lastUsedAt),
    ]),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
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

async function confirm(warning: string): Promise<void> {
  if (!process.stdin.isTTY)
    throw new CommandError(`${warning} Add --yes if that is what you want.`);
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await prompt.question(`${warning} Go on? [y/N] `).catch(() => 'no');
    if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError('Nothing was changed.');
  } finally {
    prompt.close();
  }
}

function print(result: string): void {
  process.stdout.write(`${result}\n`);
}

/** For people, who also see standard error; programs read standard output. */
function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}
