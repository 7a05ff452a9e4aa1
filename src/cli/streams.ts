import type { Readable, Writable } from 'node:stream';

/** The standard streams of a command, as `process` has them. */
export interface Streams {
  /** Only a terminal is asked for a confirmation. */
  readonly stdin: Readable & { readonly isTTY?: boolean };
  /** Carries results only. */
  readonly stdout: Writable & { readonly fd: number };
  /** Carries messages for people. */
  readonly stderr: Writable;
}
