// The command `plants load`.

import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import type { DatabaseConfig } from '../config/config.js';
import { describeFileError } from '../config/file-error.js';
import { databaseOptions } from '../database/database-options.js';
import { describeDatabaseError, isDatabaseError } from '../database/postgres-errors.js';
import { addressOf } from '../database/prepare-database.js';
import { withDataSource } from '../database/with-data-source.js';
import { idTaken, internal } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { isRequired, TEXT_FIELDS, type NewPlant } from '../plants/dto/plant.js';
import { PlantEntity } from '../plants/plant.entity.js';
import { PlantsRepository } from '../plants/plants.repository.js';
import { storePlants, type Outcome } from '../plants/store-plants.js';
import { CommandError } from './command-error.js';
import { writeResult, type Streams } from './output.js';
import { readPlantLines, type PlantLine } from './plant-lines.js';
import { formatNumber, showProgress } from './progress.js';

/** One statement and one commit. */
const CHUNK_PLANTS = 1000;
const CHUNK_BYTES = 2 ** 20;

/** A thousand plants take longer than those of a request. */
const STATEMENT_TIMEOUT_MS = 30_000;

const OPTIONAL_FIELDS = TEXT_FIELDS.filter((field) => !isRequired(field));

/** Texts that databases and programs write where a value is missing. */
const NO_VALUE = /^(?:NULL|\\N|NA|NaN)$/i;

const SAFE_TO_REPEAT =
  'Running the same command again is safe: plants that are stored already are not stored twice.';

/**
 * Stores all plants of a file, under the rules of a request. Lines that are refused are the result: CSV on standard output.
 *
 * @param file `-` for standard input
 * @param callerDir the folder of relative paths
 * @throws CommandError when it cannot go on, and at the end when lines were refused
 */
export async function loadPlants(
  config: DatabaseConfig,
  file: string,
  callerDir: string,
  { stdin, stdout, stderr }: Streams,
  signal: AbortSignal,
): Promise<void> {
  const path = file === '-' ? 'Standard input' : resolve(callerDir, file);
  const { input, share } = file === '-' ? { input: stdin, share: undefined } : await openFile(path);
  stderr.write(`Loading ${path} into the database at ${addressOf(config)}.\n`);
  const counts = { created: 0, repeated: 0, refused: 0 };
  let doubtful = 0;
  /** The last line of the last chunk that is stored. */
  let lastLine = 0;
  const summary = () =>
    `${formatNumber(counts.created)} stored, ${formatNumber(counts.repeated)} stored before, ${formatNumber(counts.refused)} refused`;

  const refuse = async ({ line }: PlantLine, { code, message }: ServiceError) => {
    // On a terminal, the bar is in this line.
    if (stderr.isTTY === true) stderr.write('\r\u001b[K');
    if (counts.refused === 0) await writeResult(stdout, 'line,error,message\n');
    await writeResult(stdout, `${line},${code},"${message.replaceAll('"', '""')}"\n`);
    counts.refused++;
  };
  const store = async (repository: PlantsRepository, chunk: readonly PlantLine[]) => {
    const valid = chunk.flatMap(({ plant }) => plant ?? []);
    const outcomes = await storeEach(repository, valid);
    for (const line of chunk) {
      const outcome = line.plant === undefined ? line.error! : outcomes.shift()!;
      if (outcome instanceof ServiceError) await refuse(line, outcome);
      else if (outcome === 'refused') await refuse(line, idTaken(line.plant!.id));
      else {
        counts[outcome]++;
        if (OPTIONAL_FIELDS.some((field) => NO_VALUE.test(line.plant![field] ?? ''))) doubtful++;
      }
    }
    lastLine = chunk.at(-1)!.line;
  };

  const progress = showProgress(stderr, summary, share);
  try {
    const timeout = Math.max(config.timeout, STATEMENT_TIMEOUT_MS);
    const options = { ...databaseOptions(config, timeout), entities: [PlantEntity] };
    await withDataSource(options, async (dataSource) => {
      const repository = new PlantsRepository(dataSource.getRepository(PlantEntity));
      let storing: Promise<void> = Promise.resolve();
      try {
        for await (const chunk of chunksOf(readPlantLines(addAbortSignal(signal, input), path))) {
          // The next chunk is read while one is stored.
          await storing;
          signal.throwIfAborted();
          storing = store(repository, chunk);
          storing.catch(() => undefined);
        }
      } finally {
        await storing;
      }
    });
  } catch (error) {
    const reason = signal.aborted ? (signal.reason as CommandError) : await commandErrorOf(error);
    // Without a message, the reader of the list has ended, and knows that.
    if (lastLine > 0 && reason.message !== '')
      reason.message += `\nUp to line ${lastLine}: ${summary()}. ${SAFE_TO_REPEAT}`;
    throw reason;
  } finally {
    progress[Symbol.dispose]();
    input.destroy();
  }
  stderr.write(lastLine === 0 ? `${path} contains no plants.\n` : `${summary()}.\n`);
  if (doubtful > 0) {
    stderr.write(
      `Plants with the text NULL, \\N, NA or NaN as their ${OPTIONAL_FIELDS.join(' or ')}, which is stored as it is: ${formatNumber(doubtful)}. ` +
        'If it means no value, delete these plants with SQL, and load them with an empty one.\n',
    );
  }
  // Its message is the list on standard output.
  if (counts.refused > 0) throw new CommandError('');
}

/** @returns the file, and the share of it that is read, if it has a size */
async function openFile(
  path: string,
): Promise<{ input: Readable; share: (() => number) | undefined }> {
  try {
    const file = await open(path);
    const stats = await file.stat();
    if (stats.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' });
    const input = file.createReadStream();
    const share = () => Math.min(1, input.bytesRead / stats.size);
    return { input, share: stats.isFile() ? share : undefined };
  } catch (error) {
    throw new CommandError(
      `${path} cannot be read: ${describeFileError(error)}. Name a file that this user can read.`,
      { cause: error },
    );
  }
}

async function* chunksOf(lines: AsyncIterable<PlantLine>): AsyncGenerator<readonly PlantLine[]> {
  let chunk: PlantLine[] = [];
  let begin = 0;
  for await (const line of lines) {
    chunk.push(line);
    if (chunk.length < CHUNK_PLANTS && line.end - begin < CHUNK_BYTES) continue;
    yield chunk;
    chunk = [];
    begin = line.end;
  }
  if (chunk.length > 0) yield chunk;
}

/**
 * @returns the outcome of each plant. If the database refuses a statement, such as by a constraint of the operator, its plants are
 *   stored one by one, so that only those that cannot be stored are refused
 * @throws ServiceError databaseUnavailable
 */
async function storeEach(
  repository: PlantsRepository,
  plants: readonly NewPlant[],
): Promise<(Outcome | ServiceError)[]> {
  if (plants.length === 0) return [];
  try {
    return await storePlants(repository, plants, false);
  } catch (error) {
    if (!isDatabaseError(error)) throw error;
    if (plants.length === 1) {
      const message = `The database refused this plant: ${describeDatabaseError(error)}.`;
      return [new ServiceError(internal, message, { cause: error })];
    }
  }
  const outcomes: (Outcome | ServiceError)[] = [];
  for (const plant of plants) outcomes.push(...(await storeEach(repository, [plant])));
  return outcomes;
}

async function commandErrorOf(error: unknown): Promise<CommandError> {
  if (error instanceof CommandError) return error;
  const { explainStartError } = await import('../start-errors.js');
  return new CommandError(explainStartError(error), { cause: error });
}
