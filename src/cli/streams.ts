import { once } from 'node:events';
import { fstatSync, statSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { isatty } from 'node:tty';
import { CommandError } from './command-error.js';

/** The standard streams of a command, as `process` has them. */
export interface Streams {
  /** A confirmation is asked for only if this is a terminal. */
  readonly stdin: Readable & { readonly isTTY?: boolean };
  /** Carries results only. */
  readonly stdout: Output;
  /** Carries messages for people. */
  readonly stderr: Writable;
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

/**
 * Writes the result of a command, with a newline.
 *
 * @returns when all of it is written
 * @throws CommandError when not all of it can be written
 */
export async function writeResult(output: Output, result: string): Promise<void> {
  const text = `${result}\n`;
  try {
    const target = fstatSync(output.fd);
    const isStream = isatty(output.fd) || target.isFIFO() || target.isSocket();
    if (isStream) await writeToStream(output, text);
    // For a file, process.stdout does not report that a full disk cut the write short.
    else writeFileSync(output.fd, text);
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new CommandError(
      `Standard output could not be written (${reason}); nothing was changed. ` +
        'Run the command again with a terminal, a pipe that is read to its end, or a file with room.',
      { cause: error },
    );
  }
}

function writeToStream(output: Output, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // The stream also emits the error of a write; without a listener, the process would crash.
    output.on('error', reject);
    output.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
