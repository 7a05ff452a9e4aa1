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
});

const load = (text: string) => {
  writeFileSync(path, text);
  return loadEnvFile(SETTINGS);
};

it('a file need not exist', () => {
  expect(loadEnvFile(SETTINGS)).toEqual(new Map());
});

it('gives the path of the file for each variable that it sets', () => {
  const text = '# PORT 1\n\n  # a\nPORT=1\nexport DATA_DIR = "a # b"\nLOG_LEVEL=\'info\' # default';
  expect(load(text)).toEqual(
    new Map([
      ['PORT', path],
      ['DATA_DIR', path],
      ['LOG_LEVEL', path],
    ]),
  );
});

it('the environment takes precedence', () => {
  process.env['PORT'] = '2';
  try {
    expect(load('PORT=1')).toEqual(new Map());
    expect(process.env['PORT']).toBe('2');
  } finally {
    delete process.env['PORT'];
  }
});

it.each([
  ['PORT 8080', 'Line 1 of PATH has no effect: write it as NAME=value, or put a # in front of it'],
  [
    'DATA_DIR="a\n\nb"\nPORT 1',
    'Line 4 of PATH has no effect: write it as NAME=value, or put a # in front of it',
  ],
  [
    '# "\r\n\r\nDATA_DIR="a\nb c"\nDATA_DIR hunter2',
    'Line 5 of PATH has no effect: write it as NAME=value, or put a # in front of it',
  ],
  [
    'PORT=0 # any\nDATA_DIR=a#hunter2',
    'DATA_DIR in PATH contains #, which begins a comment: put its value in quotes; in DATABASE_URL, write # as %23',
  ],
  [
    'export DATA_DIR = a#hunter2',
    'DATA_DIR in PATH contains #, which begins a comment: put its value in quotes; in DATABASE_URL, write # as %23',
  ],
  [
    'DATABASE_URL=postgres://me:2024#hunter2@db/x',
    'DATABASE_URL in PATH contains #, which begins a comment: put its value in quotes; in DATABASE_URL, write # as %23',
  ],
  ['PORTS=1', 'PORTS in PATH is not a setting: did you mean PORT?'],
  [
    'PORTS=1\nX_FLAG=1',
    'PORTS in PATH is not a setting: did you mean PORT?; X_FLAG in PATH is not a setting: the nearest known name is PORT (.env.example lists all settings)',
  ],
  [
    'PORT=1\nDATA_DIR=a\n export PORT = 2',
    'PORT is set several times in PATH: keep one of its lines',
  ],
])('%j is refused', (text, message) => {
  // The whole message: no part of a value is in it.
  expect(() => load(text)).toThrow(new ConfigError(message.replaceAll('PATH', path)));
});

it.each([
  'DATA_DIR="a#b"',
  "DATA_DIR='a#b'",
  'DATA_DIR=`a#b`',
  'DATA_DIR=a # b',
  'DATA_DIR=\nPORT=',
])('%j is accepted', (text) => {
  expect(load(text).has('DATA_DIR')).toBe(true);
});

it('a value in quotes may have lines that look like settings', () => {
  expect(load('DATA_DIR="a\nPORT=1\nPORT=2\nc"\nPORT=3').size).toBe(2);
});

it('a file that cannot be read is named', () => {
  // A folder cannot be read as a file, not even by root.
  mkdirSync(path);
  expect(() => loadEnvFile(SETTINGS)).toThrow(
    `${path} must be a file that this user can read. Make it readable, or remove it.`,
  );
});
