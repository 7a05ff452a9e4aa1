import { cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

/** This machine lacks something, so nothing was started. */
export class CannotRunError extends Error {}

/** How a run is watched and interrupted. */
export interface RunContext {
  /** Receives all files; those that end in ".log" are kept when something is wrong. */
  readonly folder: string;
  readonly signal: AbortSignal;
  readonly print: (text: string) => void;
}

/**
 * Gives a run a folder of its own, which is removed afterwards.
 *
 * @param out the file of the report; the logs are saved beside it, unless the run is clean
 * @param run returns whether everything was as promised, after all that it started has ended
 * @returns the exit code: 0 clean; 1 not clean, failed or interrupted; 2 something is not installed
 */
export async function runToExitCode(
  out: string,
  run: (context: RunContext) => Promise<boolean>,
): Promise<number> {
  const interruption = new AbortController();
  // The terminal signals this process and npm, which passes the signal on: a second signal is ignored.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => interruption.abort());
  }
  const { signal } = interruption;
  const print = (text: string) => void process.stderr.write(`${text}\n`);
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-faults-'));
  const saveLogs = async () => {
    const logs = `${out.replace(/\.json$/, '')}-logs`;
    await mkdir(logs, { recursive: true });
    for (const file of await readdir(folder)) {
      if (file.endsWith('.log')) await cp(join(folder, file), join(logs, file));
    }
    print(`The logs are in ${relative(process.cwd(), logs)}.`);
  };
  try {
    if (await run({ folder, signal, print })) return 0;
    await saveLogs();
    return 1;
  } catch (error) {
    if (error instanceof CannotRunError) {
      print(error.message);
      return 2;
    }
    if (signal.aborted) {
      print('Interrupted: nothing was saved, and everything that was started has been stopped.');
      return 1;
    }
    print((error as Error).message);
    await saveLogs();
    return 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
