import { accessSync, constants, createReadStream, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { CommandError } from '../command-error.js';
import { endBy } from '../interruption.js';
import type { Streams } from '../streams.js';
import { LoadProgress } from './load-progress.js';
import { Load } from './load.js';
import { PlantClient } from './plant-client.js';
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
  const isStdin = options.file === '-';
  const path = resolve(options.callerDir, isStdin ? 'stdin' : options.file);
  const size = isStdin ? undefined : sizeOf(path);
  const refused = new RefusedLines(
    resolve(options.callerDir, options.refused ?? `${path}.refused.csv`),
    options.refused !== undefined,
    isStdin ? undefined : path,
  );
  const name = isStdin ? 'Standard input' : path;
  const input = isStdin ? streams.stdin : createReadStream(path);
  const progress = new LoadProgress(streams.stderr, size);
  const load = new Load(new PlantClient(options.url, options.token), progress, refused);

  let interruption: NodeJS.Signals | undefined;
  const interrupt = (signal: NodeJS.Signals) => {
    interruption = signal;
    load.stop(new CommandError('Interrupted.'));
  };
  // Not `once`: npm sends a signal again that the terminal sent, and the second one would end the process at once.
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  let failure = await load.run(readPlantLines(input, name)).then(
    () => undefined,
    (error: Error) => error,
  );
  input.destroy();
  progress.stop();
  let listPath: string | undefined;
  try {
    listPath = refused.close(failure === undefined);
  } catch (error) {
    failure ??= error as Error;
  }
  const list = listPath === undefined ? '' : `; the list of refused lines is ${listPath}`;
  let message = `${progress.summary}${list}.`;
  if (failure instanceof CommandError) {
    const position = `Up to line ${progress.line}: at least ${message} ${SAFE_TO_REPEAT}`;
    message = progress.line === 0 ? failure.message : `${failure.message}\n${position}`;
  } else if (progress.line === 0) {
    message = `${name} has no plants. Nothing was sent.`;
  }
  const isInterrupted = failure !== undefined && interruption !== undefined;
  const isDone = failure === undefined && listPath === undefined;
  if (isDone || isInterrupted) streams.stderr.write(`${message}\n`);
  process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  if (isInterrupted) {
    endBy(interruption!);
  } else if (!isDone) {
    throw failure === undefined || failure instanceof CommandError
      ? new CommandError(message, { cause: failure })
      : failure;
  }
}

/**
 * @returns bytes; undefined if it is not a regular file
 * @throws CommandError when there is no such file, or it cannot be read
 */
function sizeOf(path: string): number | undefined {
  const cannotBeRead = (code: string | undefined) =>
    new CommandError(`${path} cannot be read (${code}).`);
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    throw cannotBeRead((error as NodeJS.ErrnoException).code);
  }
  const stat = statSync(path);
  if (stat.isDirectory()) throw cannotBeRead('EISDIR');
  return stat.isFile() ? stat.size : undefined;
}
