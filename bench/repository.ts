import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../test/setup/process/command.js';

/** @returns the version of a package of the service or of the benchmark */
export function versionOf(name: string): string {
  const folders = [join(ROOT, 'bench/node_modules'), join(ROOT, 'node_modules')];
  const path = folders.map((folder) => join(folder, name, 'package.json')).find(existsSync)!;
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}

/** @returns the commit, marked when files differ from it; `unknown` outside of a clone */
export function currentCommit(): string {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, {
        cwd: ROOT,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      });
    const isChanged = git('status', '--porcelain').trim() !== '';
    return git('rev-parse', '--short', 'HEAD').trim() + (isChanged ? ' with changes' : '');
  } catch {
    return 'unknown';
  }
}
