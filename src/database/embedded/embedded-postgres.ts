import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config/config.js';
import { StartError } from '../../errors/start-error.js';
import { clusterIn, NO_SPACE, noSpaceError, sync } from './data-dir.js';
import type { OrdinaryUser } from './ordinary-user.js';
import type { PostgresPrograms } from './postgres-programs.js';

/** Another Postgres uses the data folder. */
export class DataDirInUseError extends StartError {
  override readonly name = 'DataDirInUseError';
}

/** A running embedded Postgres. */
export interface EmbeddedPostgres {
  /** Stops it, and returns when it has ended. */
  close(): Promise<void>;
}

/** One run of Postgres. */
interface Run {
  /** Asks Postgres to end. */
  stop(): void;
  /** Resolves when Postgres has ended, with its exit code. */
  readonly ended: Promise<number | null>;
}

const RUN_POSTGRES = join(import.meta.dirname, 'run-postgres.sh');

/** The exit code of `run-postgres.sh` when another process holds its lock. */
const LOCKED = 75;

/** The exit code of a shell that does not find a program. */
const NOT_FOUND = 127;

const RESTART_DELAY_MS = 1000;

/** A start takes a tenth of a second, and seconds after a crash. A shorter DATABASE_START_TIMEOUT_MS is for other waits. */
const MIN_START_TIMEOUT_MS = 10_000;

/**
 * Starts Postgres as a child of this process, with its files and its socket in a folder that only this user can enter: it asks
 * for no password. It ends when this process ends, in whatever way. If it ends by itself, it is started again.
 *
 * @param port a part of the name of the socket
 * @param log receives what an operator should know of it
 * @throws DataDirInUseError when another Postgres uses the folder
 * @throws StartError when Postgres does not start in time
 */
export async function startEmbeddedPostgres(
  { postgres, initdb, archive }: PostgresPrograms,
  user: OrdinaryUser,
  { dataDir, poolSize, startTimeout }: Config['database'],
  port: number,
  log: (text: string) => void,
): Promise<EmbeddedPostgres> {
  const cluster = clusterIn(dataDir);
  const settings = Object.entries(settingsOf(port, poolSize)).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  const command = [...user.command, postgres, '-D', cluster, ...settings];
  const args = [RUN_POSTGRES, cluster, archive, initdb, String(user.uid), ...command];
  const timeout = Math.max(startTimeout, MIN_START_TIMEOUT_MS);
  let run: Run | undefined = await start(dataDir, args, timeout, log);
  // The name of a new cluster must survive a power failure before the first plant is acknowledged.
  sync(dataDir);
  const closing = new AbortController();
  const keepRunning = async () => {
    while (run !== undefined) {
      const code = await run.ended;
      run = undefined;
      if (!closing.signal.aborted) {
        log(`The embedded Postgres ended (exit code ${code}). It is started again.`);
      }
      while (!closing.signal.aborted && run === undefined) {
        await delay(RESTART_DELAY_MS, undefined, { signal: closing.signal }).catch(() => undefined);
        run = await start(dataDir, args, timeout, log).catch((error: Error) => {
          log(error.message);
          return undefined;
        });
      }
      if (closing.signal.aborted) run?.stop();
    }
  };
  const closed = keepRunning();
  return {
    async close() {
      closing.abort();
      run?.stop();
      await closed;
    },
  };
}

/** Settings that are not in the cluster's postgresql.conf, so that a new version of the service may change them. */
function settingsOf(port: number, poolSize: number): Record<string, string | number> {
  return {
    listen_addresses: '',
    // Relative to the cluster, whose path may be too long for a socket.
    unix_socket_directories: '.',
    unix_socket_permissions: '0700',
    port,
    // The connections of the service, and room for other programs.
    max_connections: poolSize + 100,
    shared_buffers: '32MB',
    log_line_prefix: '',
    log_checkpoints: 'off',
    // The text of statements may contain data of users.
    log_min_error_statement: 'panic',
    // Errors are reported to the client that caused them.
    log_min_messages: 'log',
  };
}

/** @returns when Postgres accepts connections */
async function start(
  dataDir: string,
  args: readonly string[],
  timeout: number,
  log: (text: string) => void,
): Promise<Run> {
  const child = spawn('/bin/sh', args, {
    cwd: '/',
    // A process group of its own: Ctrl+C in a terminal must not end Postgres before the requests in flight.
    detached: true,
    // The messages of Postgres are read below.
    env: { PATH: process.env['PATH'], LC_ALL: 'C' },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  // Not `close`: a process of a Postgres that was killed may hold standard error open.
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  let isStopping = false;
  const stop = () => {
    isStopping = true;
    child.stdin.end();
  };
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
      if (!isStopping) log(`The embedded Postgres: ${line}`);
    });
    return { stop, ended };
  }
  stop();
  if (outcome === 'late') {
    throw new StartError(
      `The embedded Postgres in ${dataDir} accepts no connections after ${timeout} ms. Its last message: ${messages.at(-1) ?? 'none'}. If it recovers from a crash, set DATABASE_START_TIMEOUT_MS to a longer time.`,
    );
  }
  throw errorOf(dataDir, outcome, messages.join('\n'));
}

/** @param output what Postgres and the shell wrote before they ended */
function errorOf(dataDir: string, code: number | null, output: string): StartError {
  const cluster = clusterIn(dataDir);
  if (code === LOCKED || /^FATAL: +lock file "postmaster.pid" already exists/m.test(output)) {
    const pid = pidIn(cluster);
    return new DataDirInUseError(
      `${dataDir} is in use by another Plant Store, whose Postgres is ${pid === undefined ? 'starting' : `process ${pid}`}. Stop that one, or set DATA_DIR to another folder.`,
    );
  }
  if (output.includes(NO_SPACE)) return noSpaceError(dataDir);
  if (output.includes('USE_FLOAT8_BYVAL')) {
    return new StartError(
      `${cluster} was written by PGlite, the embedded database of an earlier version, which Postgres cannot read. Move it away to start with an empty database; docs/embedded-postgres.md says how to move its plants.`,
    );
  }
  const [, fatal, detail] = /^(?:FATAL|PANIC): +(.*)(?:\nDETAIL: +(.*)\.)?/m.exec(output) ?? [];
  const reason = fatal ?? (output.replaceAll(/\s+/g, ' ') || `exit code ${code}`);
  const remedy =
    code === NOT_FOUND
      ? 'Install this program, or set DATABASE_URL to a Postgres server.'
      : 'Mend that, restore a copy of the folder, or move it away to start with an empty database.';
  return new StartError(
    `The embedded Postgres cannot start in ${cluster}: ${reason}${detail === undefined ? '' : ` (${detail})`}. ${remedy}`,
  );
}

/** @returns the process in postmaster.pid */
function pidIn(cluster: string): string | undefined {
  try {
    return readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n')[0] || undefined;
  } catch {
    return undefined;
  }
}
