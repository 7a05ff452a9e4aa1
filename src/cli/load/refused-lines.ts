import {
  closeSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { CommandError } from '../command-error.js';

const HEADER = 'line,error,message\n';

/** The list of refused lines: CSV with line number, `error` and message. */
export class RefusedLines {
  private isEmpty = true;
  /** Where the list is written. A list of an earlier run stays until this one is known to replace it. */
  private readonly unfinished: string;
  private readonly file: number;

  /**
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
    const existing = statSync(path, { throwIfNoEntry: false });
    if (existing?.isFile() === true && !readFileSync(path, 'utf8').startsWith(HEADER)) {
      throw new CommandError(
        `${path} exists, and is not a list of refused lines. Name another file with --refused.`,
      );
    }
    // A device, such as /dev/stderr, cannot be replaced.
    const isReplaceable = existing === undefined || existing.isFile();
    this.unfinished = isReplaceable ? `${path}.part` : path;
    try {
      this.file = openSync(this.unfinished, 'w');
    } catch (error) {
      throw notWritten(path, error);
    }
    this.write(HEADER);
  }

  add(line: number, error: number, message: string): void {
    this.isEmpty = false;
    this.write(`${line},${error},"${message.replaceAll('"', '""')}"\n`);
  }

  /**
   * Replaces the list of an earlier run. No list is left if no line was refused.
   *
   * @param isComplete whether all lines were sent: otherwise, an empty list does not replace the earlier one
   */
  close(isComplete: boolean): void {
    closeSync(this.file);
    if (this.unfinished === this.path) return;
    if (!this.isEmpty) {
      renameSync(this.unfinished, this.path);
      return;
    }
    rmSync(this.unfinished);
    if (isComplete) rmSync(this.path, { force: true });
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
