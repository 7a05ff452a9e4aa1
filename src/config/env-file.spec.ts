import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { ConfigError } from './config-error.js';
import { loadEnvFile } from './env-file.js';

const SETTINGS = ['PORT', 'DATABASE_URL', 'DATA_DIR', 'LOG_LEVEL'];

let folder: string;
let path: string;
const before = process.cwd();

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'plant-store-test-')));
  path = join(folder, '.env');
  process.chdir(folder);
});
afterEach(() => {
  process.chdir(before);
  rmSync(folder, { recursive: true });
  for (const name of [...SETTINGS, 'AWS_REGION']) delete process.env[name];
});

const load = (text: string | Buffer) => {
  writeFileSync(path, text);
  return loadEnvFile(SETTINGS);
};

it('a file need not exist', () => {
  expect(loadEnvFile(SETTINGS)).toEqual(new Map());
});

it('sets variables, also those of other programs, and gives the path of the file for each', () => {
  // With a byte order mark.
  const text = '\ufeffPORT=1\n# PORT 2\n\nexport DATA_DIR = "a # b"\nAWS_REGION=\'eu\' # default';
  expect(load(text)).toEqual(
    new Map([
      ['PORT', path],
      ['DATA_DIR', path],
      ['AWS_REGION', path],
    ]),
  );
  expect(process.env).toMatchObject({ PORT: '1', DATA_DIR: 'a # b', AWS_REGION: 'eu' });
});

it('the environment takes precedence', () => {
  process.env['PORT'] = '2';
  expect(load('PORT=1')).toEqual(new Map());
  expect(process.env['PORT']).toBe('2');
});

it('a file in UTF-16 is named', () => {
  expect(() => load(Buffer.from('\ufeffPORT=1', 'utf16le'))).toThrow(
    new ConfigError(
      `${path} is not in UTF-8, but perhaps in UTF-16, as PowerShell writes it: save it as UTF-8`,
    ),
  );
});

it('a name that is nearly that of a setting is refused, without its value', () => {
  expect(() => load('DATABSE_URL=hunter2\nPORTS=1')).toThrow(
    new ConfigError(
      `In ${path}: DATABSE_URL is not a setting: did you mean DATABASE_URL? PORTS is not a setting: did you mean PORT?`,
    ),
  );
});

it('a file that cannot be read is named', () => {
  // A folder cannot be read as a file, not even by root.
  mkdirSync(path);
  expect(() => loadEnvFile(SETTINGS)).toThrow(
    `${path} must be a file that this user can read. Make it readable, or remove it.`,
  );
});
