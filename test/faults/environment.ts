import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { ROOT } from '../setup/process/command.js';

/** @returns the machine, and the commit of the checkout */
export async function describeMachine(): Promise<Record<string, string>> {
  return {
    commit: await firstLine('git', ['-C', ROOT, 'describe', '--always', '--dirty']),
    node: process.version,
    cores: String(availableParallelism()),
  };
}

/** @returns the first line that a program prints; "unknown" when it fails */
export async function firstLine(program: string, args: readonly string[]): Promise<string> {
  const run = promisify(execFile)(program, args);
  return run.then(
    ({ stdout }) => stdout.split('\n')[0]!,
    () => 'unknown',
  );
}
