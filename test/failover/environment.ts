import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { ROOT } from '../setup/command.js';
import type { Programs } from './programs.js';

/** @returns the versions of all programs, and the machine */
export async function describeEnvironment(programs: Programs): Promise<Record<string, string>> {
  return {
    commit: await firstLine('git', ['-C', ROOT, 'describe', '--always', '--dirty']),
    node: process.version,
    cores: String(availableParallelism()),
    postgres: await firstLine(`${programs.postgres}/postgres`, ['--version']),
    patroni: await firstLine(programs.patroni, ['--version']),
    etcd: await firstLine(programs.etcd, ['--version']),
    haproxy: await firstLine(programs.haproxy, ['-v']),
    pgbouncer: await firstLine(programs.pgbouncer, ['--version']),
  };
}

async function firstLine(program: string, args: readonly string[]): Promise<string> {
  const run = promisify(execFile)(program, args);
  return run.then(
    ({ stdout }) => stdout.split('\n')[0]!,
    () => 'unknown',
  );
}
