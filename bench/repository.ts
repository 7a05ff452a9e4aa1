import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json, as seen from dist-bench/bench. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** @returns the version of an installed package */
export function versionOf(name: string): string {
  const path = join(ROOT, 'node_modules', name, 'package.json');
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
