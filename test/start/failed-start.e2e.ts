import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { attempt } from '../setup/process/attempts.js';
import { runInProcess } from '../setup/service/cli.js';
import type { Command } from '../setup/process/command.js';
import { holdClock } from '../setup/time/clock.js';
import { openTestDatabase } from '../setup/database/database.js';
import { openServer } from '../setup/http/open-server.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { replaceWaits } from '../setup/time/held-waits.js';

const resources = useResources();

/** The first log entry, as `messagesOf` returns it. */
const STARTS = ['info', expect.stringMatching(/^The Plant Store \d+\.\d+\.\d+ starts\.$/)];

/** The level and the text of each log entry. */
function messagesOf({ stdout }: Command): unknown[] {
  const entries = stdout.trimEnd().split('\n');
  return entries
    .map((entry) => JSON.parse(entry) as { level: string; msg: string })
    .map(({ level, msg }) => [level, msg]);
}

const startService = (env: Record<string, string>, cwd?: string) =>
  attempt(resources, ['dist/main.js'], { PORT: '0', ...env }, cwd);

describe('a start that cannot succeed', () => {
  it('because of wrong values of the environment and of a .env ends with one line that says which is in the file, and has no value', async () => {
    const dir = await temporaryFolder(resources);
    await writeFile(join(dir, '.env'), 'BODY_LIMIT=hunter2\nLOG_LEVEL=y\n');
    const service = startService({ LOG_LEVEL: 'hunter2' }, dir);
    expect(await service.exit()).toBe(1);
    expect(service.stdout).toBe('');
    expect(service.stderr).toMatch(
      /^BODY_LIMIT in \S+\.env must be a number of bytes [^;\n]*; LOG_LEVEL must be one of [^;\n]*\n$/,
    );
    expect(service.stderr).not.toContain('hunter2');
  });

  it('because its port is taken ends with one line, and opens no database', async () => {
    const { port } = await openServer(resources, createServer());
    const dataDir = join(tmpdir(), `plant-store-never-made-${port}`);
    const service = startService({ PORT: String(port), DATA_DIR: dataDir });
    expect(await service.exit()).toBe(1);
    expect(service.stderr).toBe(
      `The address 127.0.0.1:${port} is taken by another program. Set PORT to a free one.\n`,
    );
    expect(messagesOf(service)).toEqual([STARTS]);
    expect(existsSync(dataDir)).toBe(false);
  });

  it('in production with DATA_DIR alone, and with variables that look like settings, warns of where plants are stored, and of each variable without its value', async () => {
    const service = startService({
      NODE_ENV: 'production',
      DATA_DIR: '/dev/null/data',
      DATABASE_URI: 'hunter2',
      PGSSLCERT: 'hunter2',
    });
    expect(await service.exit()).toBe(1);
    expect(messagesOf(service)).toEqual([
      STARTS,
      ['warn', 'DATABASE_URI is not a setting: did you mean DATABASE_URL?'],
      ['warn', 'PGSSLCERT has no effect: write sslcert=FILE in DATABASE_URL.'],
      [
        'warn',
        'DATABASE_URL is not set: plants are stored in an embedded Postgres in /dev/null/data. Keep this folder (in a container, with a volume), or set DATABASE_URL or DATABASE_URL_FILE to use a Postgres server.',
      ],
    ]);
    expect(service.stderr).toMatch(
      /^Opening .+\n\/dev\/null\/data cannot be used: a file in its path is not a folder\. Set DATA_DIR to a folder of your own\.\n$/,
    );
  });

  it('in production, on a server that is away, ends with one line, without a warning', async () => {
    const service = startService({
      NODE_ENV: 'production',
      // TypeORM, pg and Node warn of some values of sslmode, on standard error.
      DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants?sslmode=require',
      DATABASE_START_TIMEOUT_MS: '0',
      LOG_LEVEL: 'trace',
    });
    expect(await service.exit()).toBe(1);
    expect(service.stderr).toBe(
      'The database at 127.0.0.1:1/plants cannot be used: connect ECONNREFUSED 127.0.0.1:1\n',
    );
    expect(messagesOf(service)).toEqual([STARTS]);
    expect(service.stdout).not.toContain('hunter2');
  });
});

describe('a command', () => {
  const advance = holdClock();

  it('with a wrong setting ends with one line and exit code 1', async () => {
    expect(await runInProcess(['migrate'], { DATA_DIR: '~/hunter2' })).toEqual({
      exitCode: 1,
      stdout: '',
      stderr:
        'DATA_DIR must be a path without ~, $ or a quote at its beginning, which only a shell replaces: write the whole path, such as /home/me/plants\n',
    });
  });

  it('on a database that stays read-only says that it waits, and why it gave up', async () => {
    const database = await openTestDatabase();
    resources.defer(() => database.close());
    resources.defer(replaceWaits(advance));
    await database.set('default_transaction_read_only', 'on');
    const env = { DATABASE_URL: database.url, DATABASE_START_TIMEOUT_MS: '3000' };
    const { exitCode, stdout, stderr } = await runInProcess(['token', 'list'], env);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(
      /^Waiting for the database .*\(25006\).*\nThe database at .* could not be used within 3000 ms: .*\(25006\); it is read-only, as a standby or a former primary is, so DATABASE_URL must lead to the primary\n$/,
    );
  });
});
