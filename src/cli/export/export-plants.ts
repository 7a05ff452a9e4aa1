// For operators: the command `plants export`.

import { resolve } from 'node:path';
import type { DatabaseConfig } from '../../config/config.js';
import {
  describeDatabaseError,
  isDatabaseError,
  isUnavailable,
} from '../../database/postgres-errors.js';
import { withSnapshot } from '../../database/snapshot.js';
import { CommandError } from '../command-error.js';
import { Interruption, untilInterrupted } from '../interruption.js';
import { OutputFile } from '../output-file.js';
import type { PlantFormat } from '../plant-format.js';
import { isTerminal, writeChunk, type Streams } from '../streams.js';
import { ExportProgress } from './export-progress.js';

export interface ExportOptions {
  /** undefined for standard output. */
  readonly file: string | undefined;
  readonly format: PlantFormat;
  /** The folder of relative paths. */
  readonly callerDir: string;
}

/**
 * Writes all plants that are stored at the beginning.
 *
 * @throws CommandError when not all of them are written: standard output then has a part of them, and a file is as before
 */
export async function exportPlants(
  config: DatabaseConfig,
  { file, format, callerDir }: ExportOptions,
  { stdout, stderr }: Streams,
): Promise<void> {
  const path = file === undefined ? undefined : resolve(callerDir, file);
  const output =
    path === undefined
      ? undefined
      : new OutputFile(
          path,
          path,
          'Name a file in a folder that exists and may be written, on a disk with room.',
        );
  // A bar in the middle of the plants would be read by nobody.
  const hasProgress = output !== undefined || !isTerminal(stdout);
  let progress: ExportProgress | undefined;
  try {
    await withSnapshot(config, 'plants', async (snapshot) => {
      // Counting takes a part of the time of the export, so it is done only for a person.
      const total = hasProgress && stderr.isTTY === true ? await snapshot.count() : undefined;
      progress = new ExportProgress(hasProgress ? stderr : undefined, format.isCsv, total);
      const writeAll = async () => {
        for await (const chunk of snapshot.copy(format.sql)) {
          if (output === undefined) await writeChunk(stdout, chunk);
          else output.write(chunk);
          progress!.written(chunk);
        }
      };
      await untilInterrupted(writeAll);
    });
    output?.finish();
    progress!.stop();
    stderr.write(`${progress!.summary}.\n`);
  } catch (error) {
    progress?.stop();
    output?.discard();
    if (error instanceof Interruption) error.message += ' Not all plants were written.';
    if (!isDatabaseError(error) && !isUnavailable(error)) throw error;
    const outcome =
      path === undefined ? 'What was written is not complete.' : `${path} was not written.`;
    throw new CommandError(
      `Not all plants could be read from the database: ${describeDatabaseError(error)}. ${outcome}`,
      { cause: error },
    );
  }
}
