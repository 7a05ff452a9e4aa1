import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
  type Stats,
} from 'node:fs';
import { dirname } from 'node:path';
import { CommandError } from '../command-error.js';

const HEADER = 'line,error,message\n';

/**
 * The list of refused lines: CSV with line number, `error` and message. There is no list if no line is refused. A list is
 * complete when all lines were sent; until then it is in a file of its own, and the list of an earlier run stays.
 */
export class RefusedLines {
  /** A device, such as /dev/stderr, cannot be replaced. */
  private readonly isDevice: boolean;
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
    const existing = statOf(path);
    this.isDevice = existing !== undefined && !existing.isFile() && !existing.isDirectory();
    this.unfinished = this.isDevice ? path : `${path}.part`;
    const files = this.isDevice ? [] : [path, this.unfinished].filter((file) => existsSync(file));
    for (const file of files) {
      if (input !== undefined && isSameFile(statOf(file), statOf(input))) {
        throw new CommandError(`--refused names the file to load: ${file}. Use another one.`);
      }
      if (!this.isList(file)) {
        throw new CommandError(
          `${file} exists, and is not a list of refused lines. Name another file with --refused.`,
        );
      }
    }
    // A folder that is read-only does no harm if no line is refused, and no earlier list is in it.
    if (!isChosen && files.length === 0) return;
    try {
      accessSync(this.isDevice ? path : `${dirname(path)}/`, constants.W_OK);
    } catch (error) {
      throw this.notWritten(error);
    }
  }

  /** @throws CommandError when the line cannot be written */
  add(line: number, error: number, message: string): void {
    try {
      if (this.file === undefined) {
        // A new file: a run that is still writing to the old one must not mix its lines with these.
        if (!this.isDevice) rmSync(this.unfinished, { force: true });
        this.file = openSync(this.unfinished, this.isDevice ? 'w' : 'wx');
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
   * @throws CommandError when the list cannot be replaced, or another run has replaced it
   */
  close(isComplete: boolean): string | undefined {
    try {
      if (this.file === undefined) {
        const earlier = isComplete && !this.isDevice ? [this.path, this.unfinished] : [];
        for (const path of earlier) rmSync(path, { force: true });
        return undefined;
      }
      const isReplaced = !isSameFile(fstatSync(this.file), statOf(this.unfinished));
      closeSync(this.file);
      if (this.isDevice) return this.path;
      if (isReplaced) {
        throw new CommandError(
          `Another run has replaced the list of refused lines, ${this.path}. Repeat this one when the other one has ended, or name another file with --refused.`,
        );
      }
      if (!isComplete) return this.unfinished;
      renameSync(this.unfinished, this.path);
      return this.path;
    } catch (error) {
      throw error instanceof CommandError ? error : this.notWritten(error);
    }
  }

  /**
   * Whether a file is a list, or the beginning of one. Reads no more, because the file may be of any size.
   *
   * @throws CommandError when it cannot be read
   */
  private isList(path: string): boolean {
    let file: number | undefined;
    try {
      file = openSync(path, 'r');
      const start = Buffer.alloc(HEADER.length);
      const length = readSync(file, start);
      return HEADER.startsWith(start.toString('utf8', 0, length));
    } catch (error) {
      throw this.notWritten(error, '', path);
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  private notWritten(cause: unknown, reason = '', path = this.path): CommandError {
    const { code } = cause as NodeJS.ErrnoException;
    return new CommandError(
      `${reason}The list of refused lines, ${path}, cannot be written (${code}). Name another file with --refused.`,
      { cause },
    );
  }
}

/** @returns undefined if there is no such file */
function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function isSameFile(a: Stats | undefined, b: Stats | undefined): boolean {
  return a !== undefined && a.ino === b?.ino && a.dev === b.dev;
}
