import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { CannotRunError } from './exit-code.js';

/**
 * @param paths of what is needed, by the package of Debian that has it; undefined for what was not found
 * @throws CannotRunError that names what to install
 */
export function requirePackages<Package extends string>(
  paths: Readonly<Record<Package, string | undefined>>,
): Readonly<Record<Package, string>> {
  if (process.platform !== 'linux') throw new CannotRunError('Did not run: this needs Linux.');
  const missing = Object.keys(paths).filter((name) => paths[name as Package] === undefined);
  if (missing.length > 0) {
    throw new CannotRunError(
      `Did not run: install the missing packages first: apt-get install ${missing.join(' ')}`,
    );
  }
  return paths as Record<Package, string>;
}

/** @returns the path of a program, if it is installed */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/usr/sbin'];
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

/** @returns the path of libfaketime, if it is installed */
export async function findFaketime(): Promise<string | undefined> {
  // Debian's folder has the name of the processor.
  const names = await readdir('/usr/lib').catch(() => []);
  return names
    .map((name) => join('/usr/lib', name, 'faketime/libfaketimeMT.so.1'))
    .find((path) => existsSync(path));
}
