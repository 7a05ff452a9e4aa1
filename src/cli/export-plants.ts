// The command `plants export`.

import { open, rename, rm, stat } from 'node:fs/promises';
import type { DatabaseConfig } from '../config/config.js';
import { describeFileError } from '../config/file-error.js';
import {
  describeDatabaseError,
  isDatabaseError,
  isUnavailable,
} from '../database/postgres-errors.js';
import { copyOut } from '../database/copy-out.js';
import { ServiceError } from '../errors/service-error.js';
import { PLANT_FIELDS, TEXT_FIELDS } from '../plants/dto/plant.js';
import { CommandError } from './command-error.js';
import { writeResult, type Streams } from './output.js';
import type { Format } from './plant-format.js';
import { formatNumber, showProgress } from './progress.js';

/** `concat` leaves out what is NULL: a text that the plant lacks. */
const JSON_LINE = `
  concat('{"id":', id, ${TEXT_FIELDS.map((field) => `',"${field}":' || to_json(${field})::text`).join(', ')}, '}')`;

/**
 * The statement of each format. Its output is the file, to the last byte: Postgres itself writes ids and texts, so nothing of them
 * can be lost on the way.
 */
const STATEMENTS: Readonly<Record<Format, string>> = {
  /** See `isLeftOut` for a plant without a tag. */
  csv: `COPY (SELECT ${PLANT_FIELDS.join()} FROM plants) TO STDOUT (FORMAT csv, HEADER)`,
  /** For Postgres, CSV of one column whose values are never quoted: JSON has no control characters, because it escapes them. */
  ndjson: `COPY (SELECT ${JSON_LINE} FROM plants) TO STDOUT (FORMAT csv, DELIMITER E'\\x01', QUOTE E'\\x02')`,
};

/**
 * Writes all plants that are stored at the beginning.
 *
 * @param path undefined for standard output
 * @throws CommandError when not all of them are written: standard output then has a part of them, and a file is as before
 */
export async function exportPlants(
  config: DatabaseConfig,
  format: Format,
  path: string | undefined,
  { stdout, stderr }: Streams,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  let bytes = 0;
  const copyTo = async (write: (chunk: Buffer) => Promise<void>) => {
    // A bar in the middle of the plants would be read by nobody.
    const isShown = path !== undefined || (stdout as { isTTY?: boolean }).isTTY !== true;
    using _progress = isShown ? showProgress(stderr, () => sizeOf(bytes)) : undefined;
    return copyOut(config, STATEMENTS[format], signal, async (chunk) => {
      await write(chunk);
      bytes += chunk.length;
    });
  };
  const rows =
    path === undefined
      ? await read(
          copyTo((chunk) => writeResult(stdout, chunk)),
          'What was written is not complete.',
          signal,
        )
      : await writeFile(path, (write) => read(copyTo(write), `${path} was not written.`, signal));
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  stderr.write(`${formatNumber(rows)} plants exported, ${sizeOf(bytes)}, in ${seconds} s.\n`);
}

const sizeOf = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

/** @throws CommandError that says why the database could not be read to the end, and what was written */
async function read(rows: Promise<number>, outcome: string, signal: AbortSignal): Promise<number> {
  try {
    return await rows;
  } catch (error) {
    if (signal.aborted) {
      const interruption = signal.reason as CommandError;
      interruption.message += ` ${outcome}`;
      throw interruption;
    }
    if (error instanceof CommandError) throw error;
    const cause = error instanceof ServiceError ? error.cause : error;
    if (!isUnavailable(cause) && !isDatabaseError(cause)) throw error;
    throw new CommandError(
      `Not all plants could be read from the database: ${describeDatabaseError(cause)}. ${outcome}`,
      { cause },
    );
  }
}

/**
 * Writes a file that is complete or not there: its data has another name until it is on the disk.
 *
 * @throws CommandError when it cannot be written; or the error of `work`
 */
async function writeFile<Result>(
  path: string,
  work: (write: (chunk: Buffer) => Promise<void>) => Promise<Result>,
): Promise<Result> {
  // Two exports at a time must not write to one file.
  const part = `${path}.${process.pid}.part`;
  const explained = async <T>(step: Promise<T>) => {
    try {
      return await step;
    } catch (error) {
      throw new CommandError(
        `${path} cannot be written: ${describeFileError(error)}. Name a file in a folder that exists and may be written, on a disk with room.`,
        { cause: error },
      );
    }
  };
  // As root, the file would take the place of a device such as /dev/null.
  const existing = await stat(path).catch(() => undefined);
  if (existing !== undefined && !existing.isFile() && !existing.isDirectory()) {
    throw new CommandError(`${path} is no file. For a pipe or a device, write: > ${path}`);
  }
  const file = await explained(open(part, 'w'));
  try {
    const result = await work((chunk) => explained(file.writeFile(chunk)));
    await explained(file.sync());
    await explained(rename(part, path));
    return result;
  } finally {
    await file.close();
    await rm(part, { force: true });
  }
}
