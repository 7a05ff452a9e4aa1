import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** @returns whether the system has a process of this number; it keeps one that has ended until its parent has noticed */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** @returns the processes that the first thread of a process started and that still run; none if the system does not list them */
export async function childrenOf(parent: number): Promise<number[]> {
  const file = `/proc/${parent}/task/${parent}/children`;
  const children = await readFile(file, 'utf8').catch(() => '');
  return children.trim().split(' ').filter(Boolean).map(Number);
}

/** The user that a program runs as; an empty object is the user of this process. */
export type User = { readonly uid: number; readonly gid: number } | Record<string, never>;

/** Postgres and PgBouncer refuse to run as root, so root starts them as the user of Debian's package. */
export async function findUser(): Promise<User> {
  if (process.getuid?.() !== 0) return {};
  const idOf = async (flag: string) =>
    Number((await promisify(execFile)('id', [flag, 'postgres'])).stdout);
  return { uid: await idOf('-u'), gid: await idOf('-g') };
}

/** Sends a signal to a process, or to a group if `pid` is negative; one that has ended is no error. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
