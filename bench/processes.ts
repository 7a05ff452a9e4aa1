import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile, truncate } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { startProgram } from '../test/setup/process/program.js';
import { ROOT } from '../test/setup/process/command.js';

/** A server in a process of its own, which may have child processes. */
export interface ServerProcess {
  /** Resources that the process and its children used so far; undefined where there is no /proc. */
  usage(): Usage | undefined;
  /** Empties the log file. */
  clearLog(): Promise<void>;
  stop(): Promise<void>;
}

interface Usage {
  readonly cpuMicroseconds: number;
  readonly residentBytes: number;
}

const START_TIMEOUT_MS = 30_000;

/** Linux reports processor time in hundredths of a second, on every machine. */
const MICROSECONDS_PER_TICK = 10_000;

/**
 * Starts a program and waits until it accepts connections.
 *
 * @param env the whole environment of the process, except PATH and the locale
 * @param logFile receives the output of the process
 * @throws Error with the end of its log when it does not start
 */
export async function startServerProcess(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  port: number,
  logFile: string,
  signal: AbortSignal,
): Promise<ServerProcess> {
  const program = await startProgram(command, logFile, { env, cwd: ROOT });
  const server: ServerProcess = {
    usage: () => usageOf(program.pid),
    clearLog: () => truncate(logFile),
    stop: () => program.stop(),
  };
  const deadline = Date.now() + START_TIMEOUT_MS;
  try {
    while (!(await accepts(port))) {
      signal.throwIfAborted();
      if (program.hasEnded() || Date.now() > deadline) {
        const lines = (await readFile(logFile, 'utf8')).trim().split('\n');
        throw new Error(`${command.join(' ')} did not start:\n${lines.slice(-10).join('\n')}`);
      }
      await delay(50);
    }
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

function usageOf(root: number): Usage | undefined {
  if (process.platform !== 'linux') return undefined;
  let cpuMicroseconds = 0;
  let residentBytes = 0;
  for (const pid of treeOf(root)) {
    const [, , ticks, kilobytes] = readProcess(pid) ?? [0, 0, 0, 0];
    cpuMicroseconds += ticks * MICROSECONDS_PER_TICK;
    residentBytes += kilobytes * 1024;
  }
  return { cpuMicroseconds, residentBytes };
}

function treeOf(root: number): Set<number> {
  const parents = new Map<number, number>();
  for (const entry of readdirSync('/proc')) {
    const process = /^\d+$/.test(entry) ? readProcess(Number(entry)) : undefined;
    if (process !== undefined) parents.set(process[0], process[1]);
  }
  const tree = new Set([root]);
  let size = 0;
  while (size < tree.size) {
    size = tree.size;
    for (const [pid, parent] of parents) {
      if (tree.has(parent)) tree.add(pid);
    }
  }
  return tree;
}

/** @returns id, parent, ticks of processor time and resident kilobytes; undefined when the process has ended */
function readProcess(pid: number): [number, number, number, number] | undefined {
  try {
    // The name of the program, in parentheses, may contain spaces and parentheses: skip it.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
    return [pid, Number(stat[1]), Number(stat[11]) + Number(stat[12]), kilobytes];
  } catch {
    return undefined;
  }
}
