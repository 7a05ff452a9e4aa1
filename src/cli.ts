import { Command, CommanderError } from 'commander';
import { describeApp } from './app.js';
import type { AccessTokensService } from './auth/access-tokens.service.js';
import { withAccessTokens } from './cli.module.js';
import { readConfig } from './config/config.js';
import { joinDatabase, type OpenDatabase } from './database/open-database.js';
import { prepareDatabase } from './database/prepare-database.js';
import { explainStartError } from './start-errors.js';
import { addTokenCommands, CommandError, UsageError } from './token-commands.js';

const program = new Command('npm run -s')
  .description('Commands of the Plant Store. They work beside a running service.')
  .showHelpAfterError()
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
    process.stdout.write(`${JSON.stringify(await describeApp(), null, 2)}\n`);
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
    const isOurs = error instanceof CommandError || error instanceof UsageError;
    process.stderr.write(`${isOurs ? error.message : explainStartError(error)}\n`);
    // Not process.exitCode: an embedded Postgres that failed may keep this process alive.
    process.exit(error instanceof UsageError ? 2 : 1);
  }
}
