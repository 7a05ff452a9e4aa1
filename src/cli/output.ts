import { fstatSync, statSync, writeFileSync } from 'node:fs';
import { isatty } from 'node:tty';
import { CommandError } from './command-error.js';
import type { Streams } from './streams.js';

type Output = Streams['stdout'];

/**
 * Refuses to make a token that nobody would see. Node opens /dev/null in place of a standard output that is closed,
 * so the two look the same.
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
 * @throws CommandError when it cannot be written to its end
 */
export async function writeResult(output: Output, result: string): Promise<void> {
  const text = `${result}\n`;
  try {
    if (isStream(output)) await writeToStream(output, text);
    // For a file, process.stdout ignores that a disk without room cut the write short.
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

function isStream({ fd }: Output): boolean {
  const output = fstatSync(fd);
  return isatty(fd) || output.isFIFO() || output.isSocket();
}

function writeToStream(output: Output, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // The stream reports the error of a write a second time, as an event, which would end the process.
    output.on('error', reject);
    output.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
