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

/** Adds `create`, `list`, `revoke` and `rotate`. Standard output carries results only. */
export function addTokenCommands(program: Command, withTokens: WithTokens): void {
  program
    .command('create')
    .description('print a new token, which is shown only this once')
    .argument('<name>', 'who will use it, such as "greenhouse"', parseName)
    .option(
      '--expires <duration>',
      'how long it works, such as 90d (default: until it is revoked)',
      parseDuration,
    )
    .action((name: string, options: { expires?: number }) =>
      withTokens(async (tokens) => {
        // Names are shown in lists and logs.
        if (isWellFormedAccessToken(name)) throw new CommandError('This is a token, not a name.');
        print(await tokens.create(name, options.expires));
      }),
    );

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
    .argument('<name|id>', 'as "token list" shows it')
    .option('--yes', 'do not ask')
    .action((nameOrId: string, options: { yes?: boolean }) =>
      withTokens(async (tokens) => {
        const live = await tokens.findLive(nameOrId);
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
      parseDuration,
    )
    .option('--yes', 'do not ask, with --grace 0')
    .action((name: string, options: { grace: number; expires?: number; yes?: boolean }) =>
      withTokens(async (tokens) => {
        if (options.grace === 0 && options.yes !== true) {
          await confirm(
            `This ends all tokens of ${name} within five seconds, and cannot be undone.`,
          );
        }
        const token = await tokens.rotate(name, options.grace, options.expires);
        if (token === undefined) throw new CommandError(noLiveToken(name));
        print(token);
      }),
    );
}

const noLiveToken = (nameOrId: string) =>
  `There is no live token "${nameOrId}". "token list" shows all tokens.`;

const MAX_NAME_LENGTH = 100;

function parseName(text: string): string {
  if (text.trim() === '' || text.length > MAX_NAME_LENGTH || /\p{Cc}/u.test(text)) {
    throw new InvalidArgumentError(`Use 1 to ${MAX_NAME_LENGTH} characters that can be seen.`);
  }
  // Its first characters make a token look like a name, and names are shown in lists and logs.
  if (text.startsWith('plantstore_'))
    throw new InvalidArgumentError('This is a token, not a name.');
  return text;
}

const UNITS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** @returns milliseconds */
function parseDuration(text: string): number {
  const [, amount, unit] =
    /^(\d{1,6})([smhdw])$/.exec(text) ?? (text === '0' ? ['', '0', 's'] : []);
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
    const answer = await prompt.question(`${warning} Go on? [y/N] `);
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
