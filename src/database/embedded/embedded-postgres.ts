import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config/config.js';
import { StartError } from '../../errors/start-error.js';
import { clusterIn } from './data-dir.js';
import { postgresEnvironment } from './postgres-package.js';

/** Another Postgres uses the data folder. */
export class DataDirInUseError extends StartError {
  override readonly name = 'DataDirInUseError';

  /** @param isOfService whether the process of its service is known */
  constructor(
    message: string,
    readonly isOfService: boolean,
  ) {
    super(message);
  }
}

/** How many connections a start and commands beside the service need. */
const SHORT_CONNECTIONS = 20;

const RESTART_DELAY_MS = 1000;

/** The script that ends Postgres needs three seconds for one that does not react. It may have been killed, too. */
const STOP_TIMEOUT_MS = 4000;

/** Ends the wait for messages while a process of a Postgres that was killed holds standard error open. */
const MESSAGES_TIMEOUT_MS = 1000;

/** A start takes a tenth of a second, and seconds after a crash. A shorter DATABASE_START_TIMEOUT_MS is for other waits. */
const MIN_START_TIMEOUT_MS = 10_000;

/**
 * Starts Postgres as a child of this process, with its files and its socket in a folder that only this user can enter: it asks
 * for no password. It ends when this process ends, in whatever way. If it ends by itself, it is started again.
 *
 * @param folder of the programs of Postgres
 * @param port a part of the name of the socket
 * @param log receives what an operator should know of it
 * @returns a function that stops it, and returns when it has ended
 * @throws DataDirInUseError when another Postgres uses the folder
 * @throws StartError when Postgres does not start in time
 */
export async function startEmbeddedPostgres(
  folder: string,
  { dataDir, poolSize, startTimeout }: Config['database'],
  port: number,
  log: (text: string) => void,
): Promise<() => Promise<void>> {
  const reserved = poolSize + SHORT_CONNECTIONS;
  const cluster = clusterIn(dataDir);
  const args = [cluster, folder, ...[port, reserved, process.pid].map(String)];
  const timeout = Math.max(startTimeout, MIN_START_TIMEOUT_MS);
  const closing = new AbortController();
  const { signal } = closing;
  const start = () => runPostgres(dataDir, args, timeout, log, signal);
  const restart = async () => {
    // A start would make an empty database in its place, which would take plants as if none had been stored.
    if (existsSync(cluster)) return start();
    throw new StartError(`${cluster} is missing, with all plants. Restore it.`);
  };

  let { ended } = await start();
  const keepRunning = async () => {
    for (;;) {
      const code = await ended;
      if (signal.aborted) return;
      log(`The embedded Postgres ended (exit code ${code}). It is started again.`);
      await delay(RESTART_DELAY_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await restart().then(
        (run) => ({ ended } = run),
        (error: Error) => signal.aborted || log(error.message),
      );
    }
  };
  const closed = keepRunning();
  return () => {
    closing.abort();
    return closed;
  };
}

/**
 * Runs Postgres until it ends by itself or `signal` is aborted.
 *
 * @returns its exit code when it ends; the outer promise resolves when it accepts connections
 */
async function runPostgres(
  dataDir: string,
  args: readonly string[],
  timeout: number,
  log: (text: string) => void,
  signal: AbortSignal,
): Promise<{ readonly ended: Promise<number | null> }> {
  const child = spawn('/bin/sh', [join(import.meta.dirname, 'run-postgres.sh'), ...args], {
    cwd: '/',
    // A process group of its own: Ctrl+C in a terminal must not end Postgres before the requests in flight.
    detached: true,
    env: postgresEnvironment(),
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let killing: NodeJS.Timeout | undefined;
  const stop = () => {
    child.stdin.end();
    killing = setTimeout(() => killGroup(child.pid!), STOP_TIMEOUT_MS);
  };
  signal.addEventListener('abort', stop);
  // Not `close`: a process of a Postgres that was killed may hold standard error open.
  const ended = once(child, 'exit').then(([code]) => {
    clearTimeout(killing);
    signal.removeEventListener('abort', stop);
    return code as number | null;
  });
  const closed = new Promise((resolve) => child.once('close', resolve));
  const lines = createInterface(child.stderr);
  const messages: string[] = [];
  const ready = new Promise<'ready'>((resolve) => {
    lines.on('line', (line) => {
      if (line.includes('ready to accept connections')) resolve('ready');
      else messages.push(line);
    });
  });
  const outcome = await Promise.race([
    ready,
    ended,
    delay(timeout, 'late' as const, { ref: false }),
  ]);
  if (outcome === 'ready') {
    lines.removeAllListeners('line').on('line', (line) => {
      if (!signal.aborted) log(`The embedded Postgres: ${line}`);
    });
    return { ended };
  }
  if (outcome === 'late') {
    stop();
    throw new StartError(
      `The embedded Postgres in ${dataDir} accepts no connections after ${timeout} ms. Its last message: ${messages.at(-1) ?? 'none'}. If it recovers from a crash, set DATABASE_START_TIMEOUT_MS to a longer time.`,
    );
  }
  // Its last messages may arrive after its exit code.
  await Promise.race([closed, delay(MESSAGES_TIMEOUT_MS, undefined, { ref: false })]);
  throw errorOf(dataDir, outcome, messages.join('\n'));
}

/** Kills what is left of a process group. */
function killGroup(id: number): void {
  try {
    process.kill(-id, 'SIGKILL');
  } catch {
    // It has ended, or belongs to `nobody`, and this root may not signal other users.
  }
}

/** @param output of Postgres and the shell, until they ended */
function errorOf(dataDir: string, code: number | null, output: string): StartError {
  const cluster = clusterIn(dataDir);
  const holder = /another postmaster \((?:PID (\d+)|left (\d+))?\)/.exec(output);
  if (holder !== null) {
    const [, service, postgres] = holder;
    return new DataDirInUseError(
      postgres === undefined
        ? `${dataDir} is in use by another Plant Store${service === undefined ? '' : ` (process ${service})`}. Stop that one, or set DATA_DIR to another folder.`
        : `${dataDir} is in use by the Postgres of a Plant Store that was killed. End it: kill -INT ${postgres}`,
      service !== undefined,
    );
  }
  if (output.includes('No space left on device')) {
    return new StartError(
      `The disk of ${dataDir} is full. Free some space, or set DATA_DIR to a folder on another disk.`,
    );
  }
  if (output.includes('USE_FLOAT8_BYVAL')) {
    return new StartError(
      `${cluster} was written by PGlite, the embedded database of an earlier version, which Postgres cannot read. Move it away to start with an empty database; docs/embedded-postgres.md says how to move its plants.`,
    );
  }
  // Postgres says what is wrong in one of its configuration files, and only then that the file is wrong.
  const [, mistake] =
    /^LOG: +(.*)\n(?:(?!LOG:).*\n)*FATAL: +(?:configuration file|could not load)/m.exec(output) ??
    [];
  const [, fatal, detail] = /^(?:FATAL|PANIC): +(.*)(?:\nDETAIL: +(.*)\.)?/m.exec(output) ?? [];
  const reason = mistake ?? fatal ?? (output.replaceAll(/\s+/g, ' ') || `exit code ${code}`);
  return new StartError(
    `The embedded Postgres cannot start in ${cluster}: ${reason}${detail === undefined ? '' : ` (${detail})`}. Correct that${fatal === undefined ? '' : ', restore a copy of the folder or move it away'}, or set DATABASE_URL to a Postgres server. docs/embedded-postgres.md says more.`,
  );
}
