import { describeMachine, firstLine } from '../setup/service/machine.js';
import type { Programs } from './programs.js';

/** @returns the versions of all programs, and the machine */
export async function describeEnvironment(programs: Programs): Promise<Record<string, string>> {
  return {
    ...(await describeMachine()),
    postgres: await firstLine(`${programs.postgres}/postgres`, ['--version']),
    patroni: await firstLine(programs.patroni, ['--version']),
    etcd: await firstLine(programs.etcd, ['--version']),
    haproxy: await firstLine(programs.haproxy, ['-v']),
    pgbouncer: await firstLine(programs.pgbouncer, ['--version']),
  };
}
