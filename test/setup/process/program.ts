import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { sendSignal, type User } from './processes.js';

const STOP_TIMEOUT_MS = 5000;

/** A program that runs until it is stopped. */
export interface RunningProgram {
  readonly pid: number;
  readonly ended: Promise<unknown>;
  hasEnded(): boolean;
  /** Sends a signal to the program and its process group. */
  signal(signal: NodeJS.Signals): void;
  /** Ends the program, by force after some seconds. */
  stop(): Promise<void>;
}

export interface ProgramOptions {
  readonly user?: User;
  /** The environment besides PATH and the locale. */
  readonly env?: Readonly<Record<string, string>>;
  /** The working folder. */
  readonly cwd?: string;
}

/**
 * Starts a program in a process group of its own: Ctrl+C does not reach it, and a signal reaches its children.
 *
 * @param logFile receives the output of the program at its end, so that it can be emptied meanwhile
 */
export async function startProgram(
  [file, ...args]: readonly string[],
  logFile: string,
  { user, env, cwd = '/' }: ProgramOptions = {},
): Promise<RunningProgram> {
  const log = await open(logFile, 'a');
  const child = spawn(file!, args, {
    cwd,
    env: { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8', ...env },
    stdio: ['ignore', log.fd, log.fd],
    detached: true,
    ...user,
  });
  const ended = once(child, 'exit');
  await once(child, 'spawn');
  await log.close();
  const pid = child.pid!;
  return {
    pid,
    ended,
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
