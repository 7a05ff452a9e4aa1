import type { Resources } from '../jest/resources.js';

declare const importByNode: (name: string) => Promise<object>;

/** That of the built modules, which is not that of the tests. */
const { env } = (await importByNode('node:process')) as typeof process;

/**
 * Changes where the programs that built modules start are looked for.
 *
 * @returns a function that takes this back, as the end of the test does
 */
export function usePath(resources: Resources, path: string): () => void {
  const { PATH } = env;
  const restore = () => void (env['PATH'] = PATH);
  resources.defer(restore);
  env['PATH'] = path;
  return restore;
}
