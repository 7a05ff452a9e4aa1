import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from './config-error.js';
import { describeFileError } from './file-error.js';

/**
 * Reads secrets from files: `DATABASE_URL_FILE` is the path of a file with the value of `DATABASE_URL`. One newline at the end
 * of the file does not belong to the value. An empty variable counts as not set.
 *
 * @param names of the variables that are secrets
 * @param dir relative paths are relative to it
 * @returns all variables, with the secrets of the files, and the path of the file for each name that has one
 * @throws ConfigError when a secret is set twice, or a file is empty or cannot be read
 */
export function readSecrets(
  env: NodeJS.ProcessEnv,
  names: readonly string[],
  dir = process.cwd(),
): { values: NodeJS.ProcessEnv; files: ReadonlyMap<string, string> } {
  const values = { ...env };
  const files = new Map<string, string>();
  for (const name of names) {
    const variable = `${name}_FILE`;
    if (!env[variable]) continue;
    if (env[name]) throw new ConfigError(`${name} and ${variable} are both set: set one of them`);
    const path = resolve(dir, env[variable]);
    values[name] = readSecret(variable, path);
    files.set(name, path);
  }
  return { values, files };
}

function readSecret(variable: string, path: string): string {
  let text: string;
  try {
    // TextDecoder leaves out a byte order mark.
    text = new TextDecoder().decode(readFileSync(path));
  } catch (error) {
    throw new ConfigError(
      `The file ${path} in ${variable} cannot be read: ${describeFileError(error)}`,
      { cause: error },
    );
  }
  const value = text.replace(/\r?\n$/, '');
  if (value === '') throw new ConfigError(`The file ${path} in ${variable} is empty`);
  return value;
}
