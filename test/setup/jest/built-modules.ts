import { globSync } from 'node:fs';
import { jest } from '@jest/globals';

declare const importByNode: (name: string) => Promise<object>;

/** They start a service, a command or a database as soon as they are imported. */
const ENTRY_POINTS = ['main.ts', 'cli.ts', 'database/data-source.ts'];

/** All but unit tests get the built modules, the ones that operators run, wherever they import one of `src/`. */
const root = new URL('../../../', import.meta.url);
const sources = globSync('**/*.ts', { cwd: new URL('src', root), exclude: ['**/*.spec.ts'] });
for (const source of sources.filter((file) => !ENTRY_POINTS.includes(file))) {
  const built = await importByNode(new URL(`dist/${source.replace(/ts$/, 'js')}`, root).href);
  jest.unstable_mockModule(`../../../src/${source}`, () => built);
}
// Their classes must be those that the service uses.
for (const name of ['@nestjs/common', 'pg', 'prom-client', 'typeorm']) {
  const module = await importByNode(name);
  jest.unstable_mockModule(name, () => module);
}
