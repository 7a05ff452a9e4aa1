import { once } from 'node:events';
import { fstatSync, statSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { isatty } from 'node:tty';
import { CommandError } from './command-error.js';
import { describeFileError } from '../config/file-error.js';

/** The standard streams of a command, as `process` has them. */
export interface Streams {
  /** A confirmation is asked for only if this is a terminal. */
  readonly stdin: Readable & { readonly isTTY?: boolean };
  /** Carries results only. */
  readonly stdout: Output;
  /** Carries messages for people. */
  readonly stderr: Writable & { readonly isTTY?: boolean };
}

type Output = Writable & { readonly fd: number };

/** @throws CommandError unless a person at a terminal says yes */
export async function confirm({ stdin, stderr }: Streams, warning: string): Promise<void> {
  if (stdin.isTTY !== true) {
    throw new CommandError(`${warning} Add --yes if that is what you want.`);
  }
  const prompt = createInterface({ input: stdin, output: stderr });
  try {
    // Ctrl+D rejects the question where standard error is a terminal, too; elsewhere, it only ends the input.
    const ended = once(prompt, 'close').then(() => 'no');
    const question = prompt.question(`${warning} Go on? [y/N] `).catch(() => 'no');
    const reply = await Promise.race([question, ended]);
    if (!/^y(es)?$/i.test(reply.trim())) throw new CommandError('Nothing was changed.');
  } finally {
    prompt.close();
  }
}

/**
 * Refuses to create a token that nobody would see. Node opens /dev/null in place of a closed standard output, so
 * the two cannot be distinguished.
 *
 * @throws CommandError
 */
export function refuseUnreadOutput({ fd }: Output): void {
  const output = fstatSync(fd);
  if (output.isCharacterDevice() && output.rdev === statSync('/dev/null').rdev) {
    throw new CommandError(
      'Standard output is closed or /dev/null, so nobody would see the token. Nothing was changed. ' +
        'Run the command again with a terminal, a pipe or a file as its standard output.',
    );
  }
}

export function isTerminal({ fd }: Output): boolean {
  return isatty(fd);
}

/**
 * Writes the result of a command, with a newline.
 *
 * @returns when all of it is written
 * @throws CommandError when not all of it can be written
 */
export async function writeResult(output: Output, result: string): Promise<void> {
  try {
    await write(output, `${result}\n`);
  } catch (error) {
    throw new CommandError(
      `Standard output could not be written: ${describeFileError(error)}. Nothing was changed. ` +
        'Run the command again with a terminal, a pipe that is read to its end, or a file with room.',
      { cause: error },
    );
  }
}

/** The program that reads standard output has ended, as `head` does. It knows that, so nothing is said. */
class ReaderEndedError extends CommandError {
  /** The one that a shell reports of a program that SIGPIPE ended. */
  override readonly exitCode = 141;
}

/**
 * Writes a part of a result that is too long for the memory.
 *
 * @returns when the part is written, so that no more than one part is in memory
 * @throws ReaderEndedError; CommandError when it cannot be written for another reason
 */
export async function writeChunk(output: Output, chunk: Uint8Array): Promise<void> {
  try {
    await write(output, chunk);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE')
      throw new ReaderEndedError('', { cause: error });
    throw new CommandError(
      `Standard output could not be written: ${describeFileError(error)}. What was written is not complete.`,
      { cause: error },
    );
  }
}

async function write(output: Output, data: string | Uint8Array): Promise<void> {
  const target = fstatSync(output.fd);
  const isStream = isatty(output.fd) || target.isFIFO() || target.isSocket();
  if (isStream) await writeToStream(output, data);
  // For a file, process.stdout does not report that a full disk cut the write short.
  else writeFileSync(output.fd, data);
}

function writeToStream(output: Output, data: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    // The stream also emits the error of a write; without a listener, the process would crash.
    output.once('error', reject);
    output.write(data, (error) => {
      if (error) return reject(error);
      output.off('error', reject);
      resolve();
    });
  });
}
