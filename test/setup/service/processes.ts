import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export async function childrenOf(parent: number): Promise<number[]> {
  const list = promisify(execFile)('ps', ['-o', 'pid=', '--ppid', String(parent)]);
  const { stdout } = await list.catch(() => ({ stdout: '' }));
  return stdout.trim().split(/\s+/).filter(Boolean).map(Number);
}
