import { Command, CommanderError } from 'commander';
import { describeApp } from './app.js';
import type { AccessTokensService } from './auth/access-tokens.service.js';
import { withAccessTokens } from './cli.module.js';
import { readConfig } from './config/config.js';
import { joinDatabase, type OpenDatabase } from './database/open-database.js';
import { prepareDatabase } from './database/prepare-database.js';
import { OutputError, writeResult } from './standard-output.js';
import { explainStartError } from './start-errors.js';
import { addTokenCommands, CommandError, UsageError } from './token-commands.js';

/** A token, a part of one, or what may be the rest of one without its beginning. */
const TOKEN_PARTS = /plantstore_\w*|[0-9A-Za-z]{20,}/gi;

// A command that did its work must not end with an error because nobody reads what it says about it.
process.stderr.on('error', () => undefined);

const program = new Command('./plant-store')
  .description('Commands of the Plant Store. They work beside a running service.')
  .showHelpAfterError()
  .configureOutput({
    // Commander repeats what it does not understand, and that may be a token.
    outputError: (text, write) => write(text.replace(TOKEN_PARTS, '…')),
  })
  .exitOverride();

addTokenCommands(program.command('token').description('access tokens'), withTokens);

program
  .command('migrate')
  .description('bring the schema of the database up to date')
  .action(() => withDatabase(() => Promise.resolve()));

program
  .command('openapi')
  .description('print the OpenAPI document')
  .action(async () => {
    await writeResult(JSON.stringify(await describeApp(), null, 2));
  });

/** Runs `action` on the database of the settings, with its schema up to date. */
async function withDatabase(action: (database: OpenDatabase) => Promise<void>): Promise<void> {
  const database = await joinDatabase(readConfig().database);
  try {
    await prepareDatabase(database.config, (line) => process.stderr.write(`${line}\n`));
    await action(database);
  } finally {
    await database.close();
  }
}

function withTokens(action: (tokens: AccessTokensService) => Promise<void>): Promise<void> {
  return withDatabase((database) => withAccessTokens(database.config, action));
}

/** 0: done; 1: it could not be done; 2: the command was not understood. */
try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has said what is wrong, or shown the help that was asked for.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else {
    const message =
      error instanceof CommandError || error instanceof UsageError || error instanceof OutputError
        ? error.message
        : explainStartError(error);
    process.stderr.write(`${message}\n`);
    // Not process.exitCode: an embedded Postgres that failed may keep this process alive.
    process.exit(error instanceof UsageError ? 2 : 1);
  }
}
