import { globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { ROOT } from './setup/command.js';

const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
};
const IMPORT = /^(?:import|export)\s[^;]*?'([^.'][^']*)';$|\bimport\('([^.'][^']*)'\)/gm;

it('the build contains every file of a package that the service imports, but not the embedded Postgres', () => {
  const dist = join(ROOT, 'dist');
  const files = globSync('**/*.js', { cwd: dist, exclude: ['node_modules'] });
  const imported = files.flatMap((file) =>
    Array.from(
      readFileSync(join(dist, file), 'utf8').matchAll(IMPORT),
      (match) => match[1] ?? match[2]!,
    ),
  );
  const isOfPackage = (name: string) =>
    Object.keys(dependencies).some((each) => name === each || name.startsWith(`${each}/`));
  const names = [...new Set(imported)].filter(isOfPackage);
  expect(names.length).toBeGreaterThan(20);
  const { resolve } = createRequire(join(dist, 'main.js'));
  // Node looks for a file of a bundled package nowhere else.
  const outside = names.filter((name) => !resolve(name).startsWith(join(dist, 'node_modules')));
  expect(outside).toEqual(['@electric-sql/pglite']);
});
