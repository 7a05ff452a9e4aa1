import { fstatSync, statSync, writeFileSync } from 'node:fs';

/** The result of a command cannot reach its reader. The message is for the operator. */
export class OutputError extends Error {
  override readonly name = 'OutputError';
}

const STDOUT = 1;

/**
 * Refuses to make a token that nobody would see. Node opens /dev/null in place of a standard output that is closed,
 * so the two look the same.
 *
 * @throws OutputError
 */
export function refuseUnreadOutput(): void {
  const output = fstatSync(STDOUT);
  if (output.isCharacterDevice() && output.rdev === statSync('/dev/null').rdev) {
    throw new OutputError(
      'Standard output is closed or /dev/null, so nobody would see the token. Nothing was changed. ' +
        'Run the command again with a terminal, a pipe or a file as its standard output.',
    );
  }
}

/**
 * Writes the result of a command, with a newline, to standard output.
 *
 * @returns when all of it is written
 * @throws OutputError when it cannot be written to its end
 */
export async function writeResult(result: string): Promise<void> {
  const text = `${result}\n`;
  try {
    if (isStream()) await writeToStream(text);
    // For a file, process.stdout ignores that a disk without room cut the write short.
    else writeFileSync(STDOUT, text);
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new OutputError(
      `Standard output could not be written (${reason}), so nothing was changed. ` +
        'Run the command again with a terminal, a pipe that is read to its end, or a file with room.',
      { cause: error },
    );
  }
}

function isStream(): boolean {
  const output = fstatSync(STDOUT);
  return process.stdout.isTTY || output.isFIFO() || output.isSocket();
}

function writeToStream(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // The stream reports the error of a write a second time, as an event, which would end the process.
    process.stdout.on('error', reject);
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
