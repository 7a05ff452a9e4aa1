import { once } from 'node:events';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Transform } from 'node:stream';
import { text } from 'node:stream/consumers';
import { run } from '../../../src/cli/program.js';

export interface CommandResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Differences from a command without a terminal, whose output goes to a file. */
export interface Surroundings {
  /** Where standard output goes, such as `/dev/full`. */
  readonly stdout?: string;
  /** The text that a person types at the terminal; without it, standard input is no terminal. */
  readonly typed?: string;
  /** Whether standard error is a terminal. */
  readonly isTerminal?: boolean;
  /** Is called with what the command writes on standard error, at once. */
  readonly onMessage?: (text: string) => void;
}

/**
 * Runs a command in this process, through the function that the executable calls. `runCommand` is for what only a process of
 * its own shows, such as a signal.
 */
export async function runInProcess(
  args: readonly string[],
  env: Record<string, string>,
  { stdout: path, typed, isTerminal = false, onMessage }: Surroundings = {},
): Promise<CommandResult> {
  const dir = await mkdtemp(join(tmpdir(), 'plant-store-output-'));
  const output = await open(path ?? join(dir, 'stdout'), 'w');
  const stdout = Object.assign(output.createWriteStream(), { fd: output.fd });
  const stdin = Object.assign(new PassThrough(), { isTTY: typed !== undefined });
  stdin.end(typed);
  const watched = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      onMessage?.(chunk.toString());
      done(null, chunk);
    },
  });
  const stderr = Object.assign(watched, { isTTY: isTerminal, columns: 80 });
  const messages = text(stderr);
  const exitCode = await run(args, { stdin, stdout, stderr }, env);
  stderr.end();
  stdout.end();
  await once(stdout, 'close');
  const written = path === undefined ? await readFile(join(dir, 'stdout'), 'utf8') : '';
  await rm(dir, { recursive: true });
  return { exitCode, stdout: written, stderr: await messages };
}
