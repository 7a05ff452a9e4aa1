import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { sendSignal, type User } from '../setup/service/processes.js';

const STOP_TIMEOUT_MS = 5000;

/** A program that runs until it is stopped. */
export interface RunningProgram {
  readonly pid: number;
  hasEnded(): boolean;
  /** Sends a signal to the program and its process group. */
  signal(signal: NodeJS.Signals): void;
  /** Ends the program, by force after some seconds. */
  stop(): Promise<void>;
}

/**
 * Starts a program in a process group of its own: Ctrl+C does not reach it, and a signal reaches its children.
 *
 * @param logFile receives the output of the program
 */
export async function startProgram(
  [file, ...args]: readonly string[],
  logFile: string,
  options: { readonly user?: User; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<RunningProgram> {
  const log = await open(logFile, 'a');
  const child = spawn(file!, args, {
    cwd: '/',
    env: { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8', ...options.env },
    stdio: ['ignore', log.fd, log.fd],
    detached: true,
    ...options.user,
  });
  const ended = once(child, 'exit');
  await once(child, 'spawn');
  await log.close();
  const pid = child.pid!;
  return {
    pid,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    signal: (signal) => sendSignal(-pid, signal),
    async stop() {
      sendSignal(-pid, 'SIGTERM');
      const timer = setTimeout(() => sendSignal(-pid, 'SIGKILL'), STOP_TIMEOUT_MS);
      await ended;
      clearTimeout(timer);
      sendSignal(-pid, 'SIGKILL');
    },
  };
}

/**
 * Waits for a condition that no event reports.
 *
 * @throws Error when it does not come true in time, or the run was interrupted
 */
export async function waitFor(
  what: string,
  seconds: number,
  signal: AbortSignal,
  condition: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what} took more than ${seconds} seconds.`);
    await delay(100, undefined, { signal });
  }
}
