import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { ConfigError } from './config-error.js';
import { problemsOfFile } from './unknown-settings.js';

/** A name with a value in quotes, which may have several lines. */
const QUOTED = /^([^#\n=]*)=[ \t]*(["'`])[^]*?\2/gm;

/**
 * Adds the variables of a file `.env` in the working folder to the process, unless they are set already.
 *
 * @param settings all names of settings
 * @returns the path of the file for each variable that was added
 * @throws ConfigError when the file cannot be read, or has a line that would have no effect
 */
export function loadEnvFile(settings: readonly string[]): ReadonlyMap<string, string> {
  if (!existsSync('.env')) return new Map();
  const path = resolve('.env');
  try {
    const text = readFileSync(path, 'utf8');
    refuseUnreadLines(path, text);
    refuseCutValues(path, text);
    const names = Object.keys(parseEnv(text));
    refuseUnknownNames(path, names, settings);
    refuseTwoValues(path, text, names);
    const added = names.filter((name) => process.env[name] === undefined);
    process.loadEnvFile(path);
    return new Map(added.map((name) => [name, path]));
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(
      `${path} must be a file that this user can read. Make it readable, or remove it.`,
      { cause: error },
    );
  }
}

/** Node skips a line such as "PORT 8080": the setting would have no effect, and nobody would notice. */
function refuseUnreadLines(path: string, text: string): void {
  // A value in quotes may have several lines: only its line breaks are kept, so that the lines can be counted.
  const withoutValues = text.replace(QUOTED, (assignment) => assignment.replace(/[^\n=]/g, ''));
  const index = withoutValues.split('\n').findIndex((line) => !/^\s*(?:#|$)|=/.test(line));
  if (index >= 0) {
    throw new ConfigError(
      `Line ${index + 1} of ${path} has no effect: write it as NAME=value, or put a # in front of it`,
    );
  }
}

/** Node reads an unquoted # as the beginning of a comment, even in a password: the setting would lose its end. */
function refuseCutValues(path: string, text: string): void {
  // In an address, quotes are not enough: a # there begins the fragment, of which pg reads nothing.
  const cut = /^\s*(?:export\s+)?(\w+)\s*=\s*(?!["'`])[^\s#][^#\n]*(?<!\s)#/m.exec(text);
  if (cut !== null) {
    throw new ConfigError(
      `${cut[1]} in ${path} contains #, which begins a comment: put its value in quotes; in DATABASE_URL, write # as %23`,
    );
  }
}

/** Node takes the last of several values: the others would have no effect, and nobody would notice. */
function refuseTwoValues(path: string, text: string, names: readonly string[]): void {
  // A value in quotes may have lines that look like settings.
  const withoutValues = text.replace(QUOTED, '$1=');
  const twice = names.find(
    (name) => withoutValues.split(new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=`, 'm')).length > 2,
  );
  if (twice !== undefined) {
    throw new ConfigError(`${twice} is set several times in ${path}: keep one of its lines`);
  }
}

/** A mistyped setting would have no effect, and nobody would notice. */
function refuseUnknownNames(
  path: string,
  names: readonly string[],
  settings: readonly string[],
): void {
  const problems = problemsOfFile(path, names, settings);
  if (problems.length > 0) throw new ConfigError(problems.join('; '));
}
