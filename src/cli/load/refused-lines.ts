// For the person who corrects the file: the list of the lines that were refused.

import { closeSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { CommandError } from '../command-error.js';
import { OutputFile } from '../output-file.js';

const HEADER = 'line,error,message\n';

/**
 * CSV with line number, `error` and message. There is no list if no line is refused. A list is complete when all lines were
 * sent; until then, the list of an earlier run stays.
 */
export class RefusedLines {
  private file: OutputFile | undefined;
  private isEmpty = true;

  /**
   * @param isChosen whether the path was given by the caller
   * @throws CommandError when the list would destroy a file, or a chosen one cannot be written
   */
  constructor(
    private readonly path: string,
    isChosen: boolean,
  ) {
    if (!isReplaceable(path)) {
      throw new CommandError(
        `${path} exists, and is not a list of refused lines. Name another file with --refused.`,
      );
    }
    // In the folder of a file to load, which may be read-only, a list is begun only when it is needed.
    if (isChosen) this.file = this.open();
  }

  /** @throws CommandError when the line cannot be written */
  add(line: number, error: number, message: string): void {
    try {
      this.file ??= this.open();
      if (this.isEmpty) this.file.write(HEADER);
      this.file.write(`${line},${error},"${message.replaceAll('"', '""')}"\n`);
      this.isEmpty = false;
    } catch (cause) {
      throw new CommandError(
        `Line ${line} was refused (${error}: ${message}).\n${(cause as CommandError).message}`,
        { cause },
      );
    }
  }

  /**
   * Replaces the list of an earlier run, because all lines were sent.
   *
   * @returns where the list is; undefined if no line was refused
   * @throws CommandError when the list cannot be replaced
   */
  finish(): string | undefined {
    if (!this.isEmpty) {
      this.file!.finish();
      return this.path;
    }
    this.file?.discard();
    if (isFile(this.path)) rmSync(this.path);
    return undefined;
  }

  /** @returns where the lines are that were refused up to now; undefined if no line was refused */
  stop(): string | undefined {
    if (this.isEmpty) {
      this.file?.discard();
      return undefined;
    }
    this.file!.close();
    return this.file!.unfinished;
  }

  private open(): OutputFile {
    const name = `The list of refused lines, ${this.path},`;
    return new OutputFile(this.path, name, 'Name another file with --refused.');
  }
}

/** Whether there is a list or the beginning of one, a device, or nothing. Of a file, which may be of any size, no more is read. */
function isReplaceable(path: string): boolean {
  try {
    if (!isFile(path)) return true;
    const file = openSync(path, 'r');
    const start = Buffer.alloc(HEADER.length);
    const length = readSync(file, start);
    closeSync(file);
    return HEADER.startsWith(start.toString('utf8', 0, length));
  } catch {
    return false;
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
