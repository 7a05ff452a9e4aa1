// The output of commands: results go to standard output, messages and questions to standard error.

import { once } from 'node:events';
import { fstatSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { isatty } from 'node:tty';
import { describeFileError } from '../config/file-error.js';
import { CommandError } from './command-error.js';

/** The standard streams of a command, as `process` has them. */
export interface Streams {
  /** A confirmation is asked for only if this is a terminal. */
  readonly stdin: Readable & { readonly isTTY?: boolean };
  /** Carries results only. */
  readonly stdout: Writable & { readonly fd: number };
  /** Carries messages for people. */
  readonly stderr: Writable & { readonly isTTY?: boolean };
}

/** The program that reads standard output has ended, as `head` does. It knows that, so nothing is said. */
class ReaderEndedError extends CommandError {
  /** The one that a shell reports of a program that SIGPIPE ended. */
  override readonly exitCode = 141;
}

/**
 * Writes a result, or a part of one that is too long for the memory.
 *
 * @returns when all of it is written
 * @throws CommandError when not all of it can be written
 */
export async function writeResult(
  stdout: Streams['stdout'],
  data: string | Uint8Array,
): Promise<void> {
  try {
    const target = fstatSync(stdout.fd);
    const isStream = isatty(stdout.fd) || target.isFIFO() || target.isSocket();
    if (isStream) await writeToStream(stdout, data);
    // For a file, process.stdout does not report that a full disk cut the write short.
    else writeFileSync(stdout.fd, data);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') {
      throw new ReaderEndedError('', { cause: error });
    }
    throw new CommandError(
      `Standard output could not be written: ${describeFileError(error)}. What was written is not complete.`,
      { cause: error },
    );
  }
}

function writeToStream(output: Writable, data: string | Uint8Array): Promise<void> {
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

/** @throws CommandError unless a person at a terminal says yes */
export async function confirm({ stdin, stderr }: Streams, warning: string): Promise<void> {
  if (stdin.isTTY !== true) {
    throw new CommandError(`${warning} Add --yes if that is what you want.`);
  }
  const prompt = createInterface({ input: stdin, output: stderr });
  try {
    // At Ctrl+D, the question is never answered, and the interface closes.
    const closed = once(prompt, 'close').then(() => 'no');
    const question = prompt.question(`${warning} Go on? [y/N] `).catch(() => 'no');
    const reply = await Promise.race([question, closed]);
    if (!/^y(es)?$/i.test(reply.trim())) throw new CommandError('Nothing was changed.');
  } finally {
    prompt.close();
  }
}
