import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { matchesGlob } from 'node:path';
import process from 'node:process';

const CONFIG = 'test/mutation/stryker.config.json';

/** Runs Stryker for the files that differ from the branch main, among those that its settings name. */
const { mutate } = JSON.parse(readFileSync(CONFIG, 'utf8'));
const excluded = mutate.filter((glob) => glob.startsWith('!')).map((glob) => glob.slice(1));
const included = mutate.filter((glob) => !glob.startsWith('!'));

const filesOf = (...args) =>
  execFileSync('git', [...args, '--', 'src'])
    .toString()
    .split('\n');
const changed = filesOf('diff', '--name-only', '--diff-filter=d', 'main');
const created = filesOf('ls-files', '--others', '--exclude-standard');
const files = [...changed, ...created].filter(
  (file) =>
    included.some((glob) => matchesGlob(file, glob)) &&
    !excluded.some((glob) => matchesGlob(file, glob)),
);

if (files.length === 0) {
  process.stdout.write('No file that is mutated differs from main.\n');
} else {
  const args = ['run', CONFIG, '--mutate', files.join(','), ...process.argv.slice(2)];
  process.exitCode = spawnSync('stryker', args, { stdio: 'inherit' }).status ?? 1;
}
