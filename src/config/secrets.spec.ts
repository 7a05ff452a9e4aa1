import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ConfigError } from './config-error.js';
import { readConfig } from './config.js';

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

const URL_VALUE = 'postgres://me:hunter2@db/plants';

it.each([
  ['DATABASE_URL', URL_VALUE],
  ['PGPASSWORD', 'hunter2 /#%@:'],
  ['METRICS_TOKEN_SHA256', 'ab'.repeat(32)],
])('%s_FILE names a file with the value', (name, value) => {
  const others = name === 'PGPASSWORD' ? { DATABASE_URL: 'postgres://me@db/plants' } : {};
  const fromFile = readConfig({ ...others, [`${name}_FILE`]: fileWith(value) });
  expect(fromFile).toEqual(readConfig({ ...others, [name]: value }));
  expect(fromFile).not.toEqual(readConfig(others));
});

it.each(['\n', '\r\n', '\n\n'])('%j at the end does not belong to a value', (end) => {
  const { url } = readConfig({ DATABASE_URL_FILE: fileWith(URL_VALUE + end) + end }).database;
  expect(url).toBe(URL_VALUE);
  expect(readConfig({ METRICS_TOKEN_SHA256: 'ab'.repeat(32) + end })).toMatchObject({
    auth: { metricsTokenHash: 'ab'.repeat(32) },
  });
});

it('a newline in the middle is kept, and a byte order mark is not', () => {
  const PGPASSWORD_FILE = fileWith('\ufefft\nwo\n');
  const { url } = readConfig({ DATABASE_URL: 'postgres://me@db/plants', PGPASSWORD_FILE }).database;
  expect(url).toBe('postgres://me@db/plants?password=t%0Awo');
});

it('an empty variable is not set, neither the one of the value nor that of the file', () => {
  const DATABASE_URL_FILE = fileWith(URL_VALUE);
  expect(readConfig({ DATABASE_URL: '', DATABASE_URL_FILE }).database.url).toBe(URL_VALUE);
  expect(readConfig({ DATABASE_URL: URL_VALUE, DATABASE_URL_FILE: '' }).database.url).toBe(
    URL_VALUE,
  );
});

it('a value and a file together are refused', () => {
  const env = { DATABASE_URL: URL_VALUE, DATABASE_URL_FILE: fileWith(URL_VALUE) };
  expect(() => readConfig(env)).toThrow(
    new ConfigError('DATABASE_URL and DATABASE_URL_FILE are both set: set one of them'),
  );
});

it.each([
  ['is empty', () => fileWith('\n'), 'is empty'],
  ['is an empty device', () => '/dev/null', 'is empty'],
  ['does not exist', () => join(dir, 'missing'), 'cannot be read: there is no such file or folder'],
  ['is a folder', () => dir, 'cannot be read: it is a folder'],
])('a file that %s is refused', (_kind, makePath, reason) => {
  const path = makePath();
  expect(() => readConfig({ DATABASE_URL_FILE: path })).toThrow(
    `The file ${path} in DATABASE_URL_FILE ${reason}`,
  );
});

it('a wrong value in a file: the message names the file, and not the value', () => {
  const path = fileWith('hunter2');
  const read = () => readConfig({ METRICS_TOKEN_SHA256_FILE: path, PORT: 'x' });
  expect(read).toThrow(`METRICS_TOKEN_SHA256 in ${path} must be `);
  expect(read).toThrow(/(^|; )PORT must be /);
  expect(read).not.toThrow(/hunter2/);
});
