import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { attempt, reasonOf } from '../setup/process/attempts.js';
import { runInProcess } from '../setup/service/cli.js';
import type { Command } from '../setup/process/command.js';
import { holdClock } from '../setup/time/clock.js';
import { openTestDatabase } from '../setup/database/database.js';
import { openServer } from '../setup/http/open-server.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { replaceWaits } from '../setup/time/held-waits.js';

const resources = useResources();

const MAIN = 'dist/main.js';
const CLI = 'dist/cli.js';

/** The first log entry, as `messagesOf` returns it. */
const STARTS = ['info', expect.stringMatching(/^The Plant Store \d+\.\d+\.\d+ starts\.$/)];

/** The level and the text of each log entry. */
function messagesOf({ stdout }: Command): unknown[] {
  const entries = stdout.trimEnd().split('\n');
  return entries
    .map((entry) => JSON.parse(entry) as { level: string; msg: string })
    .map(({ level, msg }) => [level, msg]);
}

describe('a start that cannot succeed', () => {
  // The service and the commands read the same settings. A command needs no process of its own here.
  it.each<[string, Record<string, string>, RegExp]>([
    ['a bad setting', { PORT: 'hunter2' }, /^PORT must be a whole number from 0 to 65535\n$/],
    [
      'a data folder that cannot be made',
      { DATA_DIR: '/dev/null/data' },
      /^\/dev\/null\/data cannot be used: a file in its path is not a folder\. Set DATA_DIR to a folder of your own\.\n$/,
    ],
    [
      'a data folder in a place where folders cannot be made',
      { DATA_DIR: '/proc/plants' },
      /^\/proc\/plants cannot be used: there is no such file or folder\. Set DATA_DIR to a folder of your own\.\n$/,
    ],
    [
      'a data folder that is a file',
      { DATA_DIR: '/dev/null' },
      /^\/dev\/null cannot be used: it is not a folder\. Set DATA_DIR to a folder of your own\.\n$/,
    ],
    [
      'a password with a slash',
      { DATABASE_URL: 'postgres://me:5432/hunter2@127.0.0.1:1/plants' },
      /^DATABASE_URL must have special characters .* escaped: \/ as %2F.*\n$/,
    ],
    [
      'a mode of TLS that libpq does not know, in PGSSLMODE',
      { DATABASE_URL: 'postgres://127.0.0.1:1/plants', PGSSLMODE: 'required' },
      /^PGSSLMODE must have one of these values of sslmode: disable, allow, .*, no-verify\n$/,
    ],
    [
      'a certificate of an authority that does not exist, in PGSSLROOTCERT',
      { DATABASE_URL: 'postgres://127.0.0.1:1/plants', PGSSLROOTCERT: '/nowhere/ca.crt' },
      /^PGSSLROOTCERT names a file .* that cannot be read: there is no such file or folder\n$/,
    ],
    [
      'a data folder that a shell should have expanded',
      { DATA_DIR: '~/plants' },
      /^DATA_DIR must be a path without ~, \$ or a quote .*: write the whole path, such as \/home\/me\/plants\n$/,
    ],
    [
      'two addresses in one, which the policy of the page could not contain',
      { BASE_URL: 'https://a.example.org,https://b.example.org' },
      /^BASE_URL must be an http:\/\/ or https:\/\/ address whose host has only letters, digits, hyphens and dots\n$/,
    ],
    [
      'no place for plants in production',
      { NODE_ENV: 'production', DATBASE_URL: 'hunter2' },
      /^DATABASE_URL must be set with NODE_ENV=production, or DATA_DIR .*; DATBASE_URL is not a setting: did you mean DATABASE_URL\?\n$/,
    ],
    [
      'a file of a secret that does not exist',
      { DATABASE_URL_FILE: '/nowhere/url' },
      /^The file \/nowhere\/url in DATABASE_URL_FILE cannot be read: there is no such file or folder\n$/,
    ],
  ])('%s ends a command with one line and exit code 1', async (_kind, env, line) => {
    const command = await runInProcess(['migrate'], env);
    expect(command).toMatchObject({ exitCode: 1, stdout: '' });
    expect(command.stderr).toMatch(line);
    expect(command.stderr).not.toContain('hunter2');
  });

  it('an address of another machine: the message is one line', async () => {
    // For documentation (RFC 5737), so no machine has it.
    const service = attempt(resources, [MAIN], { PORT: '0', HOST: '192.0.2.250' });
    expect(await service.exit()).toBe(1);
    expect(reasonOf(service)).toBe(
      'The address 192.0.2.250 is not on this machine. Set HOST to an address of this machine.\n',
    );
  });

  it('a port that is taken: the message is one line, and no database is opened', async () => {
    const { port } = await openServer(resources, createServer());
    const dataDir = join(tmpdir(), `plant-store-never-made-${port}`);
    const service = attempt(resources, [MAIN], { PORT: String(port), DATA_DIR: dataDir });
    expect(await service.exit()).toBe(1);
    expect(service.stderr).toBe(
      `The address 127.0.0.1:${port} is taken by another program. Set PORT to a free one.\n`,
    );
    expect(messagesOf(service)).toEqual([STARTS]);
    expect(existsSync(dataDir)).toBe(false);
  });

  it('in production, with DATA_DIR alone, and with variables that look like settings: the log says in one warning where plants are stored, and in one for each variable, without its value, what is meant', async () => {
    const env = {
      NODE_ENV: 'production',
      DATA_DIR: '/dev/null/data',
      DATABASE_URI: 'hunter2',
      CORS_ORIGIN: 'hunter2',
      PGSSLCERT: 'hunter2',
      WEB_CONCURRENCY: 'hunter2',
    };
    const service = attempt(resources, [MAIN], { PORT: '0', ...env });
    expect(await service.exit()).toBe(1);
    expect(messagesOf(service)).toEqual([
      STARTS,
      ['warn', 'DATABASE_URI is not a setting: did you mean DATABASE_URL?'],
      ['warn', 'CORS_ORIGIN is not a setting: did you mean CORS_ORIGINS?'],
      ['warn', 'PGSSLCERT has no effect: write sslcert=FILE in DATABASE_URL.'],
      [
        'warn',
        'WEB_CONCURRENCY has no effect: the service is one process. For more, run more instances of it, as docs/scaling.md says.',
      ],
      [
        'warn',
        'DATABASE_URL is not set: plants are stored in an embedded Postgres in /dev/null/data. Keep this folder (in a container, with a volume), or set DATABASE_URL or DATABASE_URL_FILE to use a Postgres server.',
      ],
    ]);
  });

  it.each([
    {
      env: { DATA_DIR: '/dev/null/data' },
      line: /^Opening .+\n\/dev\/null\/data cannot be used: a file in its path is not a folder\. Set DATA_DIR to a folder of your own\.\n$/,
    },
    {
      env: {
        NODE_ENV: 'production',
        // TypeORM, pg and Node warn of some values of sslmode, on standard error.
        DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants?sslmode=require',
        DATABASE_START_TIMEOUT_MS: '0',
        LOG_LEVEL: 'trace',
      },
      line: /^The database at 127\.0\.0\.1:1\/plants cannot be used: connect ECONNREFUSED 127\.0\.0\.1:1\n$/,
    },
  ])('there is no warning, and one line with the reason, with $env', async ({ env, line }) => {
    const service = attempt(resources, [MAIN], { PORT: '0', ...env });
    expect(await service.exit()).toBe(1);
    expect(service.stderr).toMatch(line);
    expect(messagesOf(service)).toEqual([STARTS]);
    expect(service.stdout).not.toContain('hunter2');
  });

  it.each([[[MAIN]], [[CLI, 'token', 'list']]])(
    'a .env that is a folder: the message is one line (%j)',
    async (args) => {
      const dir = await temporaryFolder(resources);
      await mkdir(join(dir, '.env'));
      const command = attempt(resources, args, { PORT: '0' }, dir);
      expect(await command.exit()).toBe(1);
      expect(command.stderr).toBe(
        `${join(dir, '.env')} must be a file that this user can read. Make it readable, or remove it.\n`,
      );
    },
  );

  it('wrong values of the environment and of a .env: the service ends with one line that says which is in the file, and has no value', async () => {
    const dir = await temporaryFolder(resources);
    await writeFile(join(dir, '.env'), 'PORT=hunter2\nLOG_LEVEL=y\n');
    const service = attempt(resources, [MAIN], { LOG_LEVEL: 'hunter2' }, dir);
    expect(await service.exit()).toBe(1);
    expect(service.stderr).toMatch(
      /^PORT in \S+\.env must be a whole number from 0 to 65535; LOG_LEVEL must be one of [^;\n]*\n$/,
    );
    expect(service.stdout + service.stderr).not.toContain('hunter2');
  });

  it('a .env with a name that is not a setting: the message has the nearest one, and no value', async () => {
    const dir = await temporaryFolder(resources);
    await writeFile(join(dir, '.env'), 'DATABSE_URL=postgres://me:hunter2@db/x\nPORT=0\nFOO=a\n');
    const command = attempt(resources, [MAIN], {}, dir);
    expect(await command.exit()).toBe(1);
    const path = join(dir, '.env');
    expect(command.stderr).toBe(
      `In ${path}: DATABSE_URL is not a setting: did you mean DATABASE_URL?\n`,
    );
  });

  // Jest's copy of the environment does not get the variables that Node reads from a file: see env-file.spec.ts for other quotes.
  it('a .env with a # in a value in quotes: the value is read whole', async () => {
    const dir = await temporaryFolder(resources);
    await writeFile(join(dir, '.env'), 'DATA_DIR="/dev/null/a#b"\n');
    const command = attempt(resources, [CLI, 'token', 'list'], {}, dir);
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toMatch(/^\/dev\/null\/a#b cannot be used: /);
  });
});

describe('a start on a database that stays unusable', () => {
  const advance = holdClock();
  let restoreWaits: () => void;

  beforeEach(() => {
    restoreWaits = replaceWaits(advance);
  });
  afterEach(() => restoreWaits());

  const startTimeout = { DATABASE_START_TIMEOUT_MS: '3000' };

  it('retries while it is away, until the timeout', async () => {
    const { exitCode, stdout, stderr } = await runInProcess(['migrate'], {
      DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants',
      ...startTimeout,
    });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toBe(
      'Waiting for the database at 127.0.0.1:1/plants: connect ECONNREFUSED 127.0.0.1:1\n' +
        'The database at 127.0.0.1:1/plants could not be used within 3000 ms: connect ECONNREFUSED 127.0.0.1:1\n',
    );
  });

  it('says that it is read-only', async () => {
    const database = await openTestDatabase();
    await database.set('default_transaction_read_only', 'on');
    const command = await runInProcess(['token', 'list'], {
      DATABASE_URL: database.url,
      ...startTimeout,
    });
    await database.close();
    expect(command.exitCode).toBe(1);
    expect(command.stderr).toMatch(
      /^Waiting for the database .*\(25006\).*\nThe database at .* could not be used within 3000 ms: .*\(25006\); it is read-only, as a standby or a former primary is, so DATABASE_URL must lead to the primary\n$/,
    );
  });
});
