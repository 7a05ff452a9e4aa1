import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config/config.js';
import { StartError } from '../../errors/start-error.js';
import { NO_SPACE, noSpaceError, openDataDir, sync } from './data-dir.js';
import { findOrdinaryUser } from './ordinary-user.js';
import { checkPostgresPrograms, findPostgresPrograms } from './postgres-programs.js';

/** Another Postgres uses the data folder. */
export class DataDirInUseError extends StartError {
  override readonly name = 'DataDirInUseError';
}

/** A running embedded Postgres. */
export interface EmbeddedPostgres {
  /** Stops it, and returns when it has ended. */
  close(): Promise<void>;
}

/** How a Postgres is started, so that it can be started again. */
interface Plan {
  readonly dataDir: string;
  readonly cluster: string;
  /** What the supervisor needs to make the cluster: its folder, its archive, `initdb`, and the user whom it belongs to. */
  readonly args: readonly string[];
  /** Runs Postgres. */
  readonly command: readonly string[];
  /** The longest time until it accepts connections, in milliseconds. */
  readonly timeout: number;
}

/** One run of Postgres. */
interface Run {
  /** Asks Postgres to end. */
  stop(): void;
  /** Resolves when Postgres has ended, with its exit code. */
  readonly ended: Promise<number | null>;
}

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
 * @throws StartError when the folder cannot be used, or Postgres does not start in time
 */
export async function startEmbeddedPostgres(
  { dataDir, poolSize, startTimeout }: Config['database'],
  port: number,
  log: (text: string) => void,
): Promise<EmbeddedPostgres> {
  // All of this is synchronous, so that Postgres starts before the caller goes on to load the service.
  const programs = findPostgresPrograms();
  checkPostgresPrograms(programs);
  const user = findOrdinaryUser(programs.postgres);
  const cluster = openDataDir(dataDir, user);
  const settings = Object.entries(settingsOf(port, poolSize)).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  const plan = {
    dataDir,
    cluster,
    args: [cluster, programs.cluster, programs.initdb, String(user.uid)],
    command: [...user.command, ...lock(cluster), programs.postgres, ...settings, '-D', cluster],
    timeout: Math.max(startTimeout, MIN_START_TIMEOUT_MS),
  };
  let run: Run | undefined = await start(plan, log);
  // The name of a new cluster must survive a power failure before the first plant is acknowledged.
  sync(dataDir);
  let isClosing = false;
  const keepRunning = async () => {
    while (run !== undefined) {
      const code = await run.ended;
      run = undefined;
      if (!isClosing) log(`The embedded Postgres ended (exit code ${code}). It is started again.`);
      while (!isClosing && run === undefined) {
        await delay(RESTART_DELAY_MS);
        run = await start(plan, log).catch((error: Error) => void log(error.message));
      }
      if (isClosing) run?.stop();
    }
  };
  const closed = keepRunning();
  return {
    async close() {
      isClosing = true;
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

/** Removes what a killed Postgres left beside its database, and another program could be taken for. */
const FORGET_KILLED = `
  rm -f "$0"/.s.PGSQL.*.lock
  [ -s "$0/postmaster.pid" ] || rm -f "$0/postmaster.pid"
  exec "$@"`;

/** The exit code when another process holds the lock; Postgres has no such code. */
const LOCKED = 75;

/**
 * Postgres recognizes another one in its folder by the number of its process, which means nothing in another container. So
 * Postgres and all its processes hold a lock of the kernel, too. macOS has no `flock`, and no containers.
 */
function lock(cluster: string): string[] {
  if (process.platform !== 'linux') return [];
  const flock = ['flock', '--nonblock', '--no-fork', `--conflict-exit-code=${LOCKED}`, cluster];
  return [...flock, 'sh', '-c', FORGET_KILLED, cluster];
}

/**
 * Makes the cluster at a first start. It gets its name when it is complete and on the disk, so that an interrupted start leaves
 * nothing that the next one could take for a database. The lock is for first starts at the same time.
 */
const MAKE_CLUSTER = `
  cluster=$1 archive=$2 initdb=$3 uid=$4
  shift 4
  make_cluster() {
    rm -rf "$cluster.unfinished" &&
      mkdir -m 700 "$cluster.unfinished" &&
      tar -xzf "$archive" -C "$cluster.unfinished" --no-same-owner &&
      "$initdb" --sync-only -D "$cluster.unfinished" >/dev/null &&
      { [ "$uid" = "$(id -u)" ] || chown -hR "$uid:$uid" "$cluster.unfinished"; } &&
      mv "$cluster.unfinished" "$cluster"
  }
  if [ ! -e "$cluster" ]; then
    exec 4<"\${cluster%/*}"
    if command -v flock >/dev/null; then flock 4; fi
    [ -e "$cluster" ] || make_cluster || exit
    exec 4<&-
  fi`;

/**
 * Runs Postgres, and ends it when standard input closes: that happens however this process ends. Postgres has a process group of
 * its own, because Ctrl+C in a terminal must not end it before the requests in flight. A Postgres that does not end, such as a
 * frozen one, is killed; it recovers at the next start.
 */
const SUPERVISE = `
  exec 3<&0
  "$@" </dev/null 3<&- &
  postgres=$!
  trap '' INT TERM HUP
  (read -r _ <&3; kill -INT "$postgres"; sleep 2; kill -QUIT "$postgres"; sleep 1; kill -KILL "$postgres") >/dev/null 2>&1 &
  wait "$postgres"
  code=$?
  kill -KILL $!
  exit "$code"`;

/** @returns when Postgres accepts connections */
async function start(plan: Plan, log: (text: string) => void): Promise<Run> {
  const script = `${MAKE_CLUSTER}\n${SUPERVISE}`;
  const child = spawn('/bin/sh', ['-c', script, 'sh', ...plan.args, ...plan.command], {
    cwd: '/',
    detached: true,
    env: {
      PATH: process.env['PATH'],
      // The messages of Postgres are read below.
      LC_ALL: 'C',
      // This process holds the lock of the kernel, so the process that a killed container left in postmaster.pid has ended, and
      // its number may belong to any other one. Postgres ignores a number that it finds in this variable.
      PG_GRANDPARENT_PID: process.platform === 'linux' ? pidIn(plan.cluster) : undefined,
    },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  // Not `close`: a process of a Postgres that was killed may hold standard error open.
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const lines = createInterface(child.stderr);
  let isStopping = false;
  const stop = () => {
    isStopping = true;
    child.stdin.end();
  };
  const messages: string[] = [];
  const ready = new Promise<'ready'>((resolve) => {
    lines.on('line', (line) => {
      if (line.includes('ready to accept connections')) resolve('ready');
      else messages.push(line);
    });
  });
  const waiting = new AbortController();
  const late = delay(plan.timeout, 'late' as const, { signal: waiting.signal });
  const outcome = await Promise.race([ready, ended, late.catch(() => 'late' as const)]);
  waiting.abort();
  if (outcome === 'ready') {
    lines.removeAllListeners('line').on('line', (line) => {
      if (!isStopping) log(`The embedded Postgres: ${line}`);
    });
    return { stop, ended };
  }
  stop();
  throw outcome === 'late' ? lateError(plan, messages) : endedError(plan, outcome, messages);
}

/** @returns the process in postmaster.pid, which may have ended */
function pidIn(cluster: string): string | undefined {
  try {
    return readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n')[0];
  } catch {
    return undefined;
  }
}

function lateError({ dataDir, timeout }: Plan, messages: readonly string[]): StartError {
  return new StartError(
    `The embedded Postgres in ${dataDir} accepts no connections after ${timeout} ms. Its last message: ${messages.at(-1) ?? 'none'}. If it recovers from a crash, set DATABASE_START_TIMEOUT_MS to a longer time.`,
  );
}

function endedError(
  { dataDir, cluster }: Plan,
  code: number | null,
  messages: readonly string[],
): StartError {
  const text = messages.join('\n');
  if (code === LOCKED || /^FATAL: +lock file "postmaster.pid" already exists/m.test(text)) {
    const pid = pidIn(cluster);
    return new DataDirInUseError(
      `${dataDir} is in use by another Plant Store, whose Postgres is ${pid === undefined ? 'starting' : `process ${pid}`}. Stop that one, or set DATA_DIR to another folder.`,
    );
  }
  if (text.includes(NO_SPACE)) return noSpaceError(dataDir);
  if (text.includes('USE_FLOAT8_BYVAL')) {
    return new StartError(
      `${cluster} was written by PGlite, the embedded database of an earlier version, which Postgres cannot read. Move it away to start with an empty database; docs/embedded-postgres.md says how to move its plants.`,
    );
  }
  const [, fatal, detail] = /^(?:FATAL|PANIC): +(.*)(?:\nDETAIL: +(.*)\.)?/m.exec(text) ?? [];
  const reason = fatal ?? (text.replaceAll(/\s+/g, ' ') || `exit code ${code}`);
  return new StartError(
    `The embedded Postgres cannot start in ${cluster}: ${reason}${detail === undefined ? '' : ` (${detail})`}. Mend that, restore a copy of the folder, or move it away to start with an empty database.`,
  );
}
