import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from './config-error.js';
import { describeFileError } from './file-error.js';

/** A file, and a variable that was read from one, may end with a line end, which on Windows is two characters: it is not meant. */
export const withoutLineEnd = (text: string): string => text.replace(/[\r\n]+$/, '');

/**
 * Reads secrets from files: `DATABASE_URL_FILE` is the path of a file with the value of `DATABASE_URL`. A line end does not
 * belong to a value. An empty variable counts as not set.
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
  const values: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries(env)) values[name] = value && withoutLineEnd(value);
  const files = new Map<string, string>();
  for (const name of names) {
    const variable = `${name}_FILE`;
    if (!values[variable]) continue;
    if (values[name])
      throw new ConfigError(`${name} and ${variable} are both set: set one of them`);
    const path = resolve(dir, values[variable]);
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
  const value = withoutLineEnd(text);
  if (value === '') throw new ConfigError(`The file ${path} in ${variable} is empty`);
  return value;
}
