import { accessSync, constants, createReadStream, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { CommandError } from '../command-error.js';
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
    isStdin ? undefined : path,
  );
  const input = isStdin ? streams.stdin : createReadStream(path);
  const progress = new LoadProgress(streams.stderr, size);
  const load = new Load(new PlantClient(options.url, options.token), progress, refused);

  let interruption: NodeJS.Signals | undefined;
  const interrupt = (signal: NodeJS.Signals) => {
    interruption = signal;
    load.stop(new CommandError('Interrupted.'));
  };
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  let failure: Error | undefined;
  try {
    await load.run(readPlantLines(input));
  } catch (error) {
    failure = error as Error;
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
    input.destroy();
    progress.stop();
    refused.close(failure === undefined);
  }
  const list = progress.refused > 0 ? `; the refused lines are listed in ${refused.path}` : '';
  const summary = `${progress.summary}${list}.`;
  if (failure instanceof CommandError) {
    const position =
      progress.line === 0 ? '' : `\nUp to line ${progress.line}: ${summary} ${SAFE_TO_REPEAT}`;
    const message = `${failure.message}${position}`;
    if (interruption === undefined) throw new CommandError(message, { cause: failure });
    streams.stderr.write(`${message}\n`);
    // Ends as by the signal, so that a script around the command ends, too.
    process.kill(process.pid, interruption);
    return;
  }
  if (failure !== undefined) throw failure;
  if (progress.refused > 0) throw new CommandError(summary);
  streams.stderr.write(`${summary}\n`);
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
