import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { CommandError } from '../command-error.js';

const HEADER = 'line,error,message\n';

/**
 * The list of refused lines: CSV with line number, `error` and message. There is no list if no line is refused. A list is
 * complete when all lines were sent; until then it is in a file of its own, and the list of an earlier run stays.
 */
export class RefusedLines {
  private readonly unfinished: string;
  private file: number | undefined;

  /**
   * @param isChosen whether the path was given by the caller
   * @param input the file that is loaded, which must not be overwritten
   * @throws CommandError when the list would destroy a file, or a chosen one cannot be written
   */
  constructor(
    readonly path: string,
    isChosen: boolean,
    input: string | undefined,
  ) {
    if (input !== undefined && isSameFile(path, input)) {
      throw new CommandError(`--refused names the file to load: ${path}. Use another one.`);
    }
    const existing = statSync(path, { throwIfNoEntry: false });
    const isFile = existing?.isFile() === true;
    // A device, such as /dev/stderr, cannot be replaced.
    const isDevice = existing !== undefined && !isFile;
    this.unfinished = isDevice ? path : `${path}.part`;
    try {
      if (existing?.isDirectory() === true) throw Object.assign(new Error(), { code: 'EISDIR' });
      // A folder that is read-only does no harm if no line is refused.
      if (isChosen || isFile) {
        accessSync(isDevice ? path : `${dirname(path)}/`, constants.W_OK);
      }
      if (isFile && !isList(path)) {
        throw new CommandError(
          `${path} exists, and is not a list of refused lines. Name another file with --refused.`,
        );
      }
    } catch (error) {
      throw error instanceof CommandError ? error : this.notWritten(error);
    }
  }

  /** @throws CommandError when the line cannot be written */
  add(line: number, error: number, message: string): void {
    try {
      if (this.file === undefined) {
        this.file = openSync(this.unfinished, 'w');
        writeSync(this.file, HEADER);
      }
      writeSync(this.file, `${line},${error},"${message.replaceAll('"', '""')}"\n`);
    } catch (cause) {
      throw this.notWritten(cause, `Line ${line} was refused (${error}: ${message}).\n`);
    }
  }

  /**
   * Replaces the list of an earlier run if all lines were sent.
   *
   * @returns where the list of this run is; undefined if no line was refused
   */
  close(isComplete: boolean): string | undefined {
    if (this.file !== undefined) closeSync(this.file);
    const isDevice = this.unfinished === this.path;
    if (this.file === undefined) {
      const earlier = isComplete && !isDevice ? [this.path, this.unfinished] : [];
      earlier.filter(isList).forEach((path) => rmSync(path));
      return undefined;
    }
    if (!isComplete) return this.unfinished;
    if (!isDevice) renameSync(this.unfinished, this.path);
    return this.path;
  }

  private notWritten(cause: unknown, reason = ''): CommandError {
    const { code } = cause as NodeJS.ErrnoException;
    return new CommandError(
      `${reason}The list of refused lines, ${this.path}, cannot be written (${code}). Name another file with --refused.`,
      { cause },
    );
  }
}

/** Reads the beginning only, because the file may be of any size. */
function isList(path: string): boolean {
  if (!existsSync(path)) return false;
  const file = openSync(path, 'r');
  try {
    const start = Buffer.alloc(HEADER.length);
    readSync(file, start);
    return start.toString() === HEADER;
  } finally {
    closeSync(file);
  }
}

function isSameFile(a: string, b: string): boolean {
  const [first, second] = [a, b].map((path) => statSync(path, { throwIfNoEntry: false }));
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev;
}
