// The embedded Postgres: a child of this process, with its files in the data folder.

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
}

export interface EmbeddedPostgres {
  /** Resolves when Postgres ends by itself, or cannot be reached any more: with the reason, one sentence. */
  readonly failed: Promise<string>;
  /** Stops it, and returns when it has ended. */
  stop(): Promise<void>;
}

/** Connections for commands beside the service, and for people. */
const OTHER_CONNECTIONS = 100;

const MESSAGES_TIMEOUT_MS = 1000;

/** A start takes a tenth of a second, and seconds after a crash: a shorter DATABASE_START_TIMEOUT_MS does not apply to it. */
const MIN_START_TIMEOUT_MS = 10_000;

/** A program that cleans up old files may remove the socket, and then nobody reaches Postgres. */
const SOCKET_CHECK_INTERVAL_MS = 5000;

/**
 * Starts Postgres, with its files and its socket in a folder that only this user can enter: it asks for no password. It ends when
 * this process ends, in whatever way.
 *
 * @param folder of the programs of Postgres
 * @param port a part of the name of the socket
 * @param log receives what an operator should know of it
 * @throws DataDirInUseError when another Postgres uses the folder
 * @throws StartError when Postgres does not start in time
 */
export async function startEmbeddedPostgres(
  folder: string,
  { dataDir, poolSize, startTimeout }: Config['database'],
  port: number,
  log: (text: string) => void,
): Promise<EmbeddedPostgres> {
  const cluster = clusterIn(dataDir);
  const numbers = [port, poolSize + OTHER_CONNECTIONS].map(String);
  const script = join(import.meta.dirname, 'run-postgres.sh');
  const child = spawn('/bin/sh', [script, cluster, folder, ...numbers], {
    cwd: '/',
    // A process group of its own: Ctrl+C in a terminal must not end Postgres before the requests in flight.
    detached: true,
    env: postgresEnvironment(),
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  // Later than `exited`, or never: a process of a Postgres that was killed may hold standard error open.
  const messagesEnded = new Promise((resolve) => child.once('close', resolve));
  const messages: string[] = [];
  const lines = createInterface(child.stderr);
  const ready = new Promise<'ready'>((resolve) => {
    lines.on('line', (line) => {
      if (line.includes('ready to accept connections')) resolve('ready');
      else messages.push(line);
    });
  });
  const timeout = Math.max(startTimeout, MIN_START_TIMEOUT_MS);
  const late = delay(timeout, 'late' as const, { ref: false });
  const outcome = await Promise.race([ready, exited, late]);
  if (outcome === 'late') {
    // Nobody waits for its end here: the next start waits for the folder.
    child.stdin.end();
    throw new StartError(
      `The embedded Postgres in ${dataDir} accepts no connections after ${timeout} ms. Its last message: ${messages.at(-1) ?? 'none'}. If it recovers from a crash, set DATABASE_START_TIMEOUT_MS to a longer time.`,
    );
  }
  if (outcome !== 'ready') {
    await Promise.race([messagesEnded, delay(MESSAGES_TIMEOUT_MS, undefined, { ref: false })]);
    throw errorOf(dataDir, outcome, messages.join('\n'));
  }

  let isStopping = false;
  lines.removeAllListeners('line').on('line', (line) => {
    if (!isStopping) log(`The embedded Postgres: ${line}`);
  });
  const socket = join(cluster, `.s.PGSQL.${port}`);
  const failed = new Promise<string>((resolve) => {
    const timer = setInterval(() => {
      if (!existsSync(socket))
        resolve(`The socket of the embedded Postgres was removed: ${socket}.`);
    }, SOCKET_CHECK_INTERVAL_MS).unref();
    void exited.then((code) => {
      clearInterval(timer);
      if (!isStopping) resolve(`The embedded Postgres ended (exit code ${code}).`);
    });
  });
  return {
    failed,
    async stop() {
      isStopping = true;
      child.stdin.end();
      await exited;
    },
  };
}

/** The packages of Linux that contain programs which a start needs. */
const PACKAGES: Readonly<Record<string, string>> = {
  flock: 'util-linux',
  setpriv: 'util-linux',
  sync: 'coreutils',
};

/** @param output of Postgres and the shell, until they ended */
function errorOf(dataDir: string, code: number | null, output: string): StartError {
  const holder = /another postmaster \(PID (\d*)\)/.exec(output);
  if (holder !== null) {
    const [, pid] = holder;
    const owner = pid === '' ? '' : ` (its Postgres, which ends with it, is the process ${pid})`;
    return new DataDirInUseError(
      `${dataDir} is in use by another Plant Store${owner}. Stop that one, or set DATA_DIR to another folder.`,
    );
  }
  // Not of the shared memory, which has no space left, either, when the container gives it too little.
  if (/^(?!.*shared memory).*No space left on device/m.test(output)) {
    return new StartError(
      `The disk of ${dataDir} is full. Free some space, or set DATA_DIR to a folder on another disk.`,
    );
  }
  const missing = /([^\s/:]+): (?:(?:command )?not found|Cannot exec)/.exec(output)?.[1];
  if (missing !== undefined) {
    // The loader of glibc is missing: the system reports the program itself as missing.
    const needed =
      missing === 'postgres'
        ? 'glibc, which systems such as Alpine Linux do not have'
        : `the program ${missing} (package ${PACKAGES[missing] ?? missing})`;
    return new StartError(
      `The embedded Postgres needs ${needed}. Install that, or set DATABASE_URL to a Postgres server.`,
    );
  }
  // Postgres says what is wrong in one of its configuration files, and only then that the file is wrong.
  const [, mistake] =
    /^LOG: +(.*)\n(?:(?!LOG:).*\n)*FATAL: +(?:configuration file|could not load)/m.exec(output) ??
    [];
  const [, fatal, detail] = /^(?:FATAL|PANIC): +(.*)(?:\nDETAIL: +(.*)\.)?/m.exec(output) ?? [];
  const reason = mistake ?? fatal ?? (output.replaceAll(/\s+/g, ' ') || `exit code ${code}`);
  return new StartError(
    `The embedded Postgres cannot start in ${clusterIn(dataDir)}: ${reason}${detail === undefined ? '' : ` (${detail})`}. Correct that${fatal === undefined ? '' : ', restore a copy of the folder or move it away'}, or set DATABASE_URL to a Postgres server. docs/database.md says more.`,
  );
}
