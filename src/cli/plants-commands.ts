import { InvalidArgumentError, Option, type Command } from 'commander';
import { readCallerDir, readClientConfig } from '../config/client-config.js';
import { PLANT_FIELDS } from '../plants/plant-fields.js';
import { CommandError } from './command-error.js';
import { Interruption } from './interruption.js';
import { FORMATS, formatOf } from './plant-format.js';
import type { Streams } from './streams.js';

/** The characters of a header field; any other would be refused only when the first request is sent. */
const SENDABLE = /^[\x21-\x7e]+$/;

export function addPlantsCommands(
  program: Command,
  streams: Streams,
  env: NodeJS.ProcessEnv | undefined,
): void {
  program
    .command('load')
    .description(
      `send all plants of a file to a service: CSV with the header ${PLANT_FIELDS.join()}, or NDJSON (a plant on each line)`,
    )
    .argument('<file>', 'the file; - for standard input')
    .addOption(
      new Option('--url <url>', 'the address of the service')
        .env('PLANT_STORE_URL')
        .argParser(parseUrl)
        .default(new URL('http://127.0.0.1:3000'), 'http://127.0.0.1:3000'),
    )
    .option('--refused <file>', 'where to list refused lines (default: <file>.refused.csv)')
    .addHelpText(
      'after',
      '\nThe token is read from the environment variable PLANT_STORE_TOKEN, or from the file in PLANT_STORE_TOKEN_FILE.',
    )
    .action(async (file: string, options: { url: URL; refused?: string }) => {
      const { token, callerDir } = readClientConfig(env);
      if (token === undefined || !SENDABLE.test(token)) {
        throw new CommandError(
          `PLANT_STORE_TOKEN is ${token === undefined ? 'not set' : 'not a token'}. Set it to a token, for example with: ` +
            'export PLANT_STORE_TOKEN=$(./plant-store token create loader)',
        );
      }
      const { loadPlants } = await import('./load/load-plants.js');
      await endIfInterrupted(streams, () =>
        loadPlants({ file, token, callerDir, ...options }, streams),
      );
    });

  program
    .command('export')
    .description(
      'write all plants in the database as CSV or NDJSON, as "plants load" reads them, in no particular order',
    )
    .argument('[file]', 'the file, .csv, .ndjson or .jsonl; - for standard output', '-')
    .addOption(
      new Option(
        '--format <format>',
        'csv or ndjson (default: by the extension of the file; csv for standard output)',
      ).choices(Object.keys(FORMATS)),
    )
    .action(async (argument: string, options: { format?: keyof typeof FORMATS }) => {
      const file = argument === '-' ? undefined : argument;
      const format = options.format === undefined ? formatOf(file) : FORMATS[options.format];
      const { withExistingDatabase } = await import('./database.js');
      const { exportPlants } = await import('./export/export-plants.js');
      const callerDir = readCallerDir(env);
      await endIfInterrupted(streams, () =>
        withExistingDatabase(streams, env, (config) =>
          exportPlants(config, { file, format, callerDir }, streams),
        ),
      );
    });
}

/** Ends the process as by the signal that interrupted `command`, when it has put everything in order. */
async function endIfInterrupted({ stderr }: Streams, command: () => Promise<void>): Promise<void> {
  try {
    await command();
  } catch (error) {
    if (!(error instanceof Interruption)) throw error;
    stderr.write(`${error.message}\n`);
    error.endProcess();
  }
}

function parseUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new InvalidArgumentError('Use an address such as http://127.0.0.1:3000.');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new InvalidArgumentError('Use an address without user, password, query and fragment.');
  }
  return url;
}
