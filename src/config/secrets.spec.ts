import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ConfigError } from './config-error.js';
import { readConfig } from './config.js';
import { SECRET_SETTINGS } from './settings.js';

let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'plant-store-secrets-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

/** Writes a file, and returns its path. */
function fileWith(content: string): string {
  const path = join(dir, 'secret');
  writeFileSync(path, content);
  return path;
}

/** A valid value of each secret, and how the program reads it. */
const secrets: Record<string, { value: string; read: (env: NodeJS.ProcessEnv) => unknown }> = {
  DATABASE_URL: {
    value: 'postgres://me:hunter2@db/plants',
    read: (env) => readConfig(env).database.url,
  },
  PGPASSWORD: {
    value: 'hunter2 /#%@:',
    read: (env) => readConfig({ DATABASE_URL: 'postgres://me@db/plants', ...env }).database.url,
  },
  METRICS_TOKEN_SHA256: {
    value: 'ab'.repeat(32),
    read: (env) => readConfig(env).auth.metricsTokenHash,
  },
};

it('every secret setting is tested here', () => {
  expect(Object.keys(secrets).sort()).toEqual([...SECRET_SETTINGS].sort());
});

describe.each(Object.entries(secrets))('%s_FILE', (name, { value, read }) => {
  const variable = `${name}_FILE`;

  it.each(['', '\n', '\r\n', '\r', '\n\n'])(
    'names a file with the value, which is the same with %j at its end, in a file and in the variable',
    (end) => {
      const fromFile = read({ [variable]: fileWith(value + end) + end });
      expect(fromFile).toBe(read({ [name]: value }));
      expect(fromFile).toBe(read({ [name]: value + end }));
      expect(fromFile).not.toBe(read({}));
    },
  );

  it('is used when the variable itself is empty', () => {
    expect(read({ [name]: '', [variable]: fileWith(value) })).toBe(read({ [name]: value }));
  });

  it('counts as not set when it is empty', () => {
    expect(read({ [variable]: '' })).toBe(read({}));
  });

  const messageOf = (env: NodeJS.ProcessEnv) => {
    try {
      read(env);
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      return (error as Error).message;
    }
    throw new Error('The settings were accepted.');
  };

  it('is refused together with the variable itself', () => {
    expect(messageOf({ [name]: value, [variable]: fileWith(value) })).toBe(
      `${name} and ${variable} are both set: set one of them`,
    );
  });

  it.each(['', '\n'])('is refused when the file is empty (%j)', (content) => {
    const path = fileWith(content);
    expect(messageOf({ [variable]: path })).toBe(`The file ${path} in ${variable} is empty`);
  });

  it('is refused when it names a device that is empty', () => {
    expect(messageOf({ [variable]: '/dev/null' })).toBe(
      `The file /dev/null in ${variable} is empty`,
    );
  });

  it('is refused when the file does not exist', () => {
    const path = join(dir, 'missing');
    expect(messageOf({ [variable]: path })).toBe(
      `The file ${path} in ${variable} cannot be read: there is no such file or folder`,
    );
  });

  it('is refused when it names a folder', () => {
    expect(messageOf({ [variable]: dir })).toBe(
      `The file ${dir} in ${variable} cannot be read: it is a folder`,
    );
  });
});

it.each([
  ['DATABASE_URL', 'hunter2'],
  ['METRICS_TOKEN_SHA256', 'hunter2'],
])('a wrong %s in a file: the message names the file, and not the value', (name, value) => {
  const path = fileWith(value);
  const read = () => readConfig({ [`${name}_FILE`]: path, PORT: 'x' });
  expect(read).toThrow(`${name} in ${path} must be `);
  expect(read).toThrow(/(^|; )PORT must be /);
  expect(read).not.toThrow(/hunter2/);
});

it('a newline in the middle is kept', () => {
  const { url } = readConfig({
    DATABASE_URL: 'postgres://me@db/plants',
    PGPASSWORD_FILE: fileWith('t\nwo\n'),
  }).database;
  expect(url).toBe('postgres://me@db/plants?password=t%0Awo');
});
