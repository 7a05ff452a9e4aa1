// The commands `plants load` and `plants export`.

import { resolve } from 'node:path';
import { Option, type Command } from 'commander';
import { interruptible } from './interruption.js';
import type { Streams } from './output.js';
import { FORMATS, formatOf, type Format } from './plant-format.js';

/** The folder in which a command was called: `plant-store` itself works in the folder of the project. */
const callerDirOf = (env = process.env): string => env['PLANT_STORE_CALLER_DIR'] || process.cwd();

export function addPlantsCommands(
  program: Command,
  streams: Streams,
  env: NodeJS.ProcessEnv | undefined,
): void {
  program
    .command('load')
    .description(
      'store all plants of a file in the database: CSV with a header, such as id,name, or NDJSON (a plant on each line), also in gzip; ' +
        'the lines that are refused are written to standard output',
    )
    .argument('<file>', 'the file; - for standard input')
    .action(async (file: string) => {
      const { withDatabase } = await import('./database.js');
      const { loadPlants } = await import('./load-plants.js');
      await withDatabase(streams, env, (config) =>
        interruptible((signal) => loadPlants(config, file, callerDirOf(env), streams, signal)),
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
      ).choices([...FORMATS]),
    )
    .action(async (argument: string, options: { format?: Format }) => {
      const file = argument === '-' ? undefined : argument;
      const format = options.format ?? formatOf(file);
      const path = file === undefined ? undefined : resolve(callerDirOf(env), file);
      const { withExistingDatabase } = await import('./database.js');
      const { exportPlants } = await import('./export-plants.js');
      await withExistingDatabase(streams, env, (config) =>
        interruptible((signal) => exportPlants(config, format, path, streams, signal)),
      );
    });
}
