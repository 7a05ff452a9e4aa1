import { closeSync, fstatSync, openSync, statSync, unlinkSync, writeSync } from 'node:fs';
import { CommandError } from '../command-error.js';

/** The list of refused lines: CSV with line number, `error` and message. */
export class RefusedLines {
  private isEmpty = true;
  private readonly file: number;

  /**
   * Empties the list of an earlier run.
   *
   * @param input the file that is loaded, which must not be overwritten
   * @throws CommandError when it cannot be written
   */
  constructor(
    readonly path: string,
    input: string | undefined,
  ) {
    if (input !== undefined && isSameFile(path, input)) {
      throw new CommandError(`--refused names the file to load: ${path}. Use another one.`);
    }
    try {
      this.file = openSync(path, 'w');
    } catch (error) {
      throw notWritten(path, error);
    }
    this.write('line,error,message\n');
  }

  add(line: number, error: number, message: string): void {
    this.isEmpty = false;
    this.write(`${line},${error},"${message.replaceAll('"', '""')}"\n`);
  }

  /** Removes an empty list. */
  close(): void {
    if (this.isEmpty && fstatSync(this.file).isFile()) unlinkSync(this.path);
    closeSync(this.file);
  }

  private write(text: string): void {
    try {
      writeSync(this.file, text);
    } catch (error) {
      throw notWritten(this.path, error);
    }
  }
}

function isSameFile(a: string, b: string): boolean {
  const [first, second] = [a, b].map((path) => statSync(path, { throwIfNoEntry: false }));
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev;
}

function notWritten(path: string, error: unknown): CommandError {
  const { code } = error as NodeJS.ErrnoException;
  return new CommandError(
    `The list of refused lines, ${path}, cannot be written (${code}). Name another file with --refused.`,
    { cause: error },
  );
}
