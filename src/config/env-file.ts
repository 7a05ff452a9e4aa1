import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { ConfigError } from './config-error.js';
import { misspelledSettings } from './misspelled-settings.js';

/**
 * Adds the variables of a file `.env` in the working folder to the process, unless they are set already.
 *
 * @param settings all names of settings
 * @returns the path of the file for each variable that was added
 * @throws ConfigError when the file cannot be read, or a name in it is nearly that of a setting
 */
export function loadEnvFile(settings: readonly string[]): ReadonlyMap<string, string> {
  const path = resolve('.env');
  const bytes = read(path);
  if (bytes === undefined) return new Map();
  if (bytes.includes(0)) {
    throw new ConfigError(
      `${path} is not in UTF-8, but perhaps in UTF-16, as PowerShell writes it: save it as UTF-8`,
    );
  }
  // TextDecoder leaves out the byte order mark, which would be a part of the first name.
  const variables = parseEnv(new TextDecoder().decode(bytes));
  const problems = misspelledSettings(Object.keys(variables), settings);
  if (problems.length > 0) throw new ConfigError(`In ${path}: ${problems.join(' ')}`);
  const added = Object.entries(variables).filter(([name]) => process.env[name] === undefined);
  Object.assign(process.env, Object.fromEntries(added));
  return new Map(added.map(([name]) => [name, path]));
}

/** @returns undefined if there is no such file */
function read(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new ConfigError(
      `${path} must be a file that this user can read. Make it readable, or remove it.`,
      { cause: error },
    );
  }
}
