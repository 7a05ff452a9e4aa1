// The commands `token create`, `list`, `revoke` and `rotate`.

import { InvalidArgumentError, Option, type Command } from 'commander';
import { DEVELOPMENT } from '../auth/access-token.js';
import type { AccessTokensService, TokenName } from '../auth/access-tokens.service.js';
import { keepDevelopmentToken } from '../auth/development-token.js';
import type { DatabaseConfig } from '../config/config.js';
import { withoutLineEnd } from '../config/secrets.js';
import { CommandError } from './command-error.js';
import { describeDuration, parseDuration } from './duration.js';
import { confirm, writeResult, type Streams } from './output.js';
import { checkName } from './token-name.js';
import { timeOf, tokenStatusOf, tokenTableOf } from './token-table.js';

/** A shorter grace period may end before the new token has reached its user. */
const SAFE_GRACE_MS = 3_600_000;

/** The service caches for nearly as long that a token is valid. */
const SOON = 'within five seconds';

/** Commander takes every other word with such a beginning for an option. */
const AFTER_DASHES = 'one that begins with - comes last, after --';

export function addTokenCommands(
  program: Command,
  streams: Streams,
  env: NodeJS.ProcessEnv | undefined,
): void {
  type Action = (tokens: AccessTokensService, config: DatabaseConfig) => Promise<void>;
  const withTokens = async (action: Action, mayMakeDatabase = false) => {
    const { withDatabase, withExistingDatabase } = await import('./database.js');
    const { withAccessTokens } = await import('../auth/with-access-tokens.js');
    await (mayMakeDatabase ? withDatabase : withExistingDatabase)(streams, env, (config) =>
      withAccessTokens(config, (tokens) => action(tokens, config)),
    );
  };

  program
    .command('create')
    .description('create a token and print it; it cannot be shown again')
    .argument('<name>', `the name of the client, such as "greenhouse"; ${AFTER_DASHES}`)
    .option(
      '--expires <duration>',
      'how long the token works, such as 90d (default: until it is revoked)',
      parseLifetime,
    )
    .action(async (name: string, options: { expires?: number }) => {
      checkName(name);
      await withTokens(async (tokens, { isEmbedded }) => {
        if (name === DEVELOPMENT && isEmbedded === true) {
          const isLive = (await tokens.findLive(name)).length > 0;
          throw new CommandError(
            `The token of this name is made by the service, and printed at its start. Choose another name, or ${isLive ? 'replace that token with: ./plant-store token rotate development' : 'start the service again, which makes a new one.'}`,
          );
        }
        const { token, id } = await tokens.create(name, options.expires);
        await logToken(streams, { name, id }, `Created the token ${name} (${id}).`);
        await writeResult(streams.stdout, `${token}\n`);
      }, true);
    });

  program
    .command('list')
    .description('list all tokens: id, name, status and times')
    .option('--json', 'print JSON, for programs')
    .action((options: { json?: boolean }) =>
      withTokens(async (tokens) => {
        const list = (await tokens.list()).map((token) => ({
          ...token,
          status: tokenStatusOf(token),
        }));
        const result = options.json === true ? JSON.stringify(list, null, 2) : tokenTableOf(list);
        await writeResult(streams.stdout, `${result}\n`);
      }),
    );

  program
    .command('revoke')
    .description('revoke a token, or all tokens of a name; this cannot be undone')
    .argument(
      '<name|id|token>',
      `a name or an id from "token list", or the token itself; ${AFTER_DASHES}`,
      withoutLineEnd,
    )
    .option('--yes', 'do not ask for confirmation')
    .action((word: string, options: { yes?: boolean }) =>
      withTokens(async (tokens) => {
        const live = await tokens.findLive(word);
        if (live.length === 0) throw noLiveToken();
        if (options.yes !== true) {
          const names = live.map(({ id, name }) => `${name} (${id})`).join(', ');
          await confirm(streams, `This revokes ${names} ${SOON}, and cannot be undone.`);
        }
        await tokens.revoke(live.map(({ id }) => id));
        for (const { id, name } of live) {
          await logToken(streams, { name, id }, `Revoked the token ${name} (${id}).`);
        }
      }),
    );

  program
    .command('rotate')
    .description(
      'create a new token for a name and print it; its old tokens expire after the grace period',
    )
    .argument('<name>', `a name from "token list"; ${AFTER_DASHES}`)
    .addOption(
      new Option(
        '--grace <duration>',
        'how long the old tokens still work; 0 ends them within five seconds',
      )
        .argParser(parseDuration)
        .default(parseDuration('24h'), '24h'),
    )
    .option(
      '--expires <duration>',
      'how long the new token works (default: the lifetime of the newest old token)',
      parseLifetime,
    )
    .option('--yes', 'do not ask for confirmation of a grace period below one hour')
    .action((name: string, options: { grace: number; expires?: number; yes?: boolean }) => {
      checkName(name);
      return withTokens(async (tokens, config) => {
        const isOfService = name === DEVELOPMENT && config.isEmbedded === true;
        const noToken = () =>
          isOfService
            ? new CommandError(
                'There is no live token of this name. The next start of the service makes and prints one.',
              )
            : noLiveToken();
        if ((await tokens.findLive(name)).length === 0) throw noToken();
        if (options.grace < SAFE_GRACE_MS && options.yes !== true) {
          await confirm(
            streams,
            `The current tokens of this name stop working ${endOfGrace(options.grace)}. This cannot be undone.`,
          );
        }
        const made = await tokens.rotate(name, options.grace, options.expires);
        if (made === undefined) throw noToken();
        const old = made.replaced.map(({ id, expiresAt }) =>
          options.grace === 0
            ? ` ${id} stops working ${SOON}.`
            : ` ${id} works until ${timeOf(expiresAt)}.`,
        );
        const message = `Rotated the token ${name}: the new one is ${made.id}.${old.join('')}`;
        await logToken(streams, { name, id: made.id }, message);
        await writeResult(streams.stdout, `${made.token}\n`);
        if (isOfService) keepDevelopmentToken(config.dataDir, made.token);
      });
    });
}

/** The entry for a token that was made, rotated or revoked. */
async function logToken({ stderr }: Streams, token: TokenName, sentence: string): Promise<void> {
  const { logCommand } = await import('../logging/command-log.js');
  logCommand(stderr, { token: token.name, tokenId: token.id }, sentence);
}

function noLiveToken(): CommandError {
  return new CommandError(
    'There is no live token of this name or id, or this token is not live. "./plant-store token list" shows all tokens.',
  );
}

function endOfGrace(milliseconds: number): string {
  return milliseconds === 0 ? SOON : `in ${describeDuration(milliseconds)}`;
}

/** @returns milliseconds */
function parseLifetime(text: string): number {
  const lifetime = parseDuration(text);
  if (lifetime === 0)
    throw new InvalidArgumentError('A token with a lifetime of 0 would never work.');
  return lifetime;
}
