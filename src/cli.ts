import { NestFactory } from '@nestjs/core';
import { Command } from 'commander';
import { describeApp } from './app.js';
import { AccessTokensService } from './auth/access-tokens.service.js';
import { CliModule } from './cli.module.js';
import { readConfig } from './config/config.js';
import { joinDatabase, type OpenDatabase } from './database/open-database.js';
import { prepareDatabase } from './database/prepare-database.js';
import { explainStartError } from './start-errors.js';

const program = new Command('npm run -s')
  .description('Commands of the Plant Store. They work beside a running service.')
  .showHelpAfterError();

const token = program.command('token').description('access tokens');

token
  .command('create')
  .argument('<name>', 'who will use the token, such as "greenhouse"')
  .description('print a new token, which is shown only this once')
  .action((name: string) =>
    withTokens(async (tokens) => {
      process.stdout.write(`${await tokens.create(name)}\n`);
    }),
  );

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

/** Runs `action` with the service class that the guard uses. */
function withTokens(action: (tokens: AccessTokensService) => Promise<void>): Promise<void> {
  return withDatabase(async (database) => {
    const app = await NestFactory.createApplicationContext(CliModule.register(database.config), {
      logger: ['error', 'warn'],
      abortOnError: false,
    });
    try {
      await action(app.get(AccessTokensService));
    } finally {
      await app.close();
    }
  });
}

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${explainStartError(error)}\n`);
  process.exitCode = 1;
}
