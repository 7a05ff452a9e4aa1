// Understands the command line, and runs one command.

import { Command, CommanderError } from 'commander';
import { version } from '../config/version.js';
import { CommandError } from './command-error.js';
import { addPlantsCommands } from './plants-commands.js';
import { writeResult, type Streams } from './output.js';
import { addTokenCommands } from './token-commands.js';

// Nest, TypeORM and the database are imported by the commands that need them, because they take longer to load
// than everything else that a help text or a usage error needs.

/**
 * Runs one command.
 *
 * @param args the words of the command line after the name of the program
 * @param env the settings, by default those of the process and of the file `.env`
 * @returns the exit code. 0: done; 1: failed; 2: the command was not understood
 */
export async function run(
  args: readonly string[],
  streams: Streams,
  env?: NodeJS.ProcessEnv,
): Promise<number> {
  try {
    await createProgram(streams, env).parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    // Commander has already printed the error, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof CommandError) {
      if (error.message !== '') streams.stderr.write(`${error.message}\n`);
      return error.exitCode;
    }
    const { explainStartError } = await import('../start-errors.js');
    streams.stderr.write(`${explainStartError(error)}\n`);
    return 1;
  }
}

function createProgram(streams: Streams, env: NodeJS.ProcessEnv | undefined): Command {
  const program = new Command('./plant-store')
    .description(
      'Starts the Plant Store, and manages its tokens and plants. Every command except start also works while the service runs.',
    )
    .version(version, '--version', 'print the version')
    .showHelpAfterError()
    // Commander shows the help of the command above one that it does not know, as if it were that of the unknown one.
    .addHelpText('beforeAll', ({ error, command }) => {
      const word = command.args.find((arg) => !arg.startsWith('-'));
      const known = ['help', ...command.commands.map((known) => known.name())];
      if (!error && command.commands.length > 0 && word !== undefined && !known.includes(word)) {
        command.error(`error: unknown command '${word}'`);
      }
      return '';
    })
    .configureOutput({
      writeOut: (text) => streams.stdout.write(text),
      writeErr: (text) => streams.stderr.write(text),
    })
    .exitOverride();

  program
    .command('start')
    .description('start the service, with the settings in the environment and in .env')
    .action(async () => {
      const { start } = await import('../start.js');
      await start();
    });
  addTokenCommands(program.command('token').description('manage access tokens'), streams, env);
  addPlantsCommands(
    program.command('plants').description('load plants from a file, or export all plants to one'),
    streams,
    env,
  );

  program
    .command('check')
    .description('check the settings and the database, and change nothing')
    .action(async () => {
      const { checkDatabase } = await import('./database.js');
      const { NEEDED_PRIVILEGES } = await import('../health/readiness.service.js');
      const result = await checkDatabase(streams, env, NEEDED_PRIVILEGES);
      await writeResult(streams.stdout, `${result}\n`);
    });

  program
    .command('migrate')
    .description('bring the schema of the database up to date')
    .action(async () => {
      const { withDatabase } = await import('./database.js');
      await withDatabase(streams, env, () => {
        streams.stderr.write('The schema of the database is up to date.\n');
        return Promise.resolve();
      });
    });

  program
    .command('openapi')
    .description('print the OpenAPI document')
    .action(async () => {
      const { describeApp } = await import('../app.js');
      await writeResult(streams.stdout, `${JSON.stringify(await describeApp(), null, 2)}\n`);
    });

  return program;
}
