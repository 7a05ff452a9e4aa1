// For operators: the command `plants load`.

import { accessSync, constants, createReadStream, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { CommandError } from '../command-error.js';
import { describeFileError } from '../../config/file-error.js';
import { untilInterrupted } from '../interruption.js';
import type { Streams } from '../streams.js';
import { LoadProgress } from './load-progress.js';
import { Load } from './load.js';
import { PlantClient, UnusableServiceError } from './plant-client.js';
import { readPlantLines } from './plant-lines.js';
import { RefusedLines } from './refused-lines.js';

export interface LoadOptions {
  /** `-` for standard input. */
  readonly file: string;
  readonly url: URL;
  readonly token: string;
  /** Where refused lines are listed. */
  readonly refused?: string;
  /** The folder of relative paths. */
  readonly callerDir: string;
}

const SAFE_TO_REPEAT =
  'Running the same command again is safe: plants that are stored already are not stored twice.';

/**
 * Sends all plants of a file to a service.
 *
 * @throws CommandError when it cannot go on, and at the end when lines were refused
 */
export async function loadPlants(options: LoadOptions, streams: Streams): Promise<void> {
  const { callerDir } = options;
  const isStdin = options.file === '-';
  const path = resolve(callerDir, isStdin ? 'stdin' : options.file);
  const size = isStdin ? undefined : sizeOf(path);
  const refused = new RefusedLines(
    resolve(callerDir, options.refused ?? `${path}.refused.csv`),
    options.refused !== undefined,
  );
  const name = isStdin ? 'Standard input' : path;
  const input = isStdin ? streams.stdin : createReadStream(path);
  const progress = new LoadProgress(streams.stderr, size);
  const load = new Load(new PlantClient(options.url, options.token), progress, refused);
  let list: string | undefined;
  const summary = () =>
    `${progress.summary}${list === undefined ? '' : `; the list of refused lines is ${list}`}.`;
  try {
    await untilInterrupted(() => load.run(readPlantLines(input, name))).finally(() => load.stop());
    list = refused.finish();
  } catch (error) {
    list = refused.stop();
    const isNothingStored = error instanceof UnusableServiceError && progress.done === 0;
    if (error instanceof CommandError && progress.line > 0 && !isNothingStored) {
      error.message += `\nUp to line ${progress.line}: at least ${summary()} ${SAFE_TO_REPEAT}`;
    }
    throw error;
  } finally {
    input.destroy();
    progress.stop();
  }
  if (list !== undefined) throw new CommandError(summary());
  const hasPlants = progress.line > 0;
  streams.stderr.write(
    `${hasPlants ? summary() : `${name} contains no plants. Nothing was sent.`}\n`,
  );
}

/**
 * @returns bytes; undefined if it is not a regular file
 * @throws CommandError when there is no such file, or it cannot be read
 */
function sizeOf(path: string): number | undefined {
  const cannotBeRead = (error: unknown) =>
    new CommandError(
      `${path} cannot be read: ${describeFileError(error)}. Name a file that this user can read.`,
      { cause: error },
    );
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    throw cannotBeRead(error);
  }
  const stat = statSync(path);
  if (stat.isDirectory()) throw cannotBeRead({ code: 'EISDIR' });
  return stat.isFile() ? stat.size : undefined;
}
