// For export and the list of refused lines: a file that is complete or not there.

import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { CommandError } from './command-error.js';
import { describeFileError } from '../config/file-error.js';

/**
 * A file that a command writes. A reader never finds an unfinished one under its name: that has a name of its own, and replaces
 * an earlier file when it is complete and on the disk.
 */
export class OutputFile {
  /** Where the data is before `finish`. Two runs for one file do not write to the same one. */
  readonly unfinished: string;
  private readonly target: string;
  /** A device or a named pipe cannot be replaced. */
  private readonly isRegular: boolean;
  private readonly file: number;
  private isOpen = true;

  /**
   * @param name the file in messages
   * @param remedy what to do if it cannot be written
   * @throws CommandError when it cannot be made
   */
  constructor(
    path: string,
    private readonly name: string,
    private readonly remedy: string,
  ) {
    try {
      const stats = statSync(path, { throwIfNoEntry: false });
      this.isRegular = stats?.isFile() ?? true;
      this.target = this.isRegular ? targetOf(path) : path;
      // Commands in two containers that share a folder can have the same process id.
      this.unfinished = this.isRegular ? `${this.target}.${randomUUID()}.part` : this.target;
      this.file = openSync(this.unfinished, 'w');
    } catch (error) {
      throw this.notWritten(error);
    }
  }

  /** @throws CommandError when not all of the data can be written */
  write(data: string | Uint8Array): void {
    try {
      writeFileSync(this.file, data);
    } catch (error) {
      throw this.notWritten(error);
    }
  }

  /** @throws CommandError when the file cannot be put on the disk */
  finish(): void {
    try {
      if (!this.isRegular) return this.close();
      fsyncSync(this.file);
      this.close();
      renameSync(this.unfinished, this.target);
      const folder = openSync(dirname(this.target), 'r');
      fsyncSync(folder);
      closeSync(folder);
    } catch (error) {
      throw this.notWritten(error);
    }
  }

  /** Leaves the text that was written under the name of the unfinished file. */
  close(): void {
    if (this.isOpen) closeSync(this.file);
    this.isOpen = false;
  }

  /** Leaves the file as it was before. */
  discard(): void {
    this.close();
    if (this.isRegular) rmSync(this.unfinished, { force: true });
  }

  private notWritten(cause: unknown): CommandError {
    const reason = describeFileError(cause);
    return new CommandError(`${this.name} cannot be written: ${reason}. ${this.remedy}`, { cause });
  }
}

/** @returns the file that a link names, which may not exist yet: a link is not replaced */
function targetOf(path: string): string {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return path;
  return targetOf(resolve(realpathSync(dirname(path)), readlinkSync(path)));
}
