import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { postPlant } from '../setup/http/post-plant.js';
import { end, runService, stop, urlOf } from '../setup/service/built-service.js';
import { runInProcess } from '../setup/service/cli.js';
import { ROOT, runCommand } from '../setup/process/command.js';
import { startPostgresServer, type PostgresServer } from '../setup/database/postgres-server.js';

/** Cannot be in an address as it is. */
const PASSWORD = 'p/a#s%s@w:o?r d';

const QUOTED = `'${PASSWORD}'`;

describe('a server that asks for a password, which DATABASE_URL does not have', () => {
  let server: PostgresServer;
  let dir: string;
  let address: string;

  beforeAll(async () => {
    server = await startPostgresServer();
    dir = await mkdtemp(join(tmpdir(), 'plant-store-password-'));
    address = `127.0.0.1:${server.port}`;
    const rules = join(server.data, 'pg_hba.conf');
    const rule = 'host all gardener 127.0.0.1/32 scram-sha-256\n';
    await writeFile(rules, rule + (await readFile(rules, 'utf8')));
    await server.administer('SELECT pg_reload_conf()');
    await server.administer(`CREATE ROLE gardener LOGIN PASSWORD ${QUOTED}`);
    await server.administer('CREATE DATABASE garden OWNER gardener');
  });
  afterAll(async () => {
    await server.close();
    await rm(dir, { recursive: true });
  });

  const passwordFile = async () => {
    const file = join(dir, 'password');
    await writeFile(file, `${PASSWORD}\n`);
    return file;
  };
  const urlFile = async () => {
    const file = join(dir, 'url');
    const password = encodeURIComponent(PASSWORD);
    await writeFile(file, `postgres://gardener:${password}@${address}/garden\n`);
    return file;
  };
  const url = () => `postgres://gardener@${address}/garden`;
  // One server twice: the list makes the service look for the one that takes writes.
  type Settings = Record<string, string>;
  const ways: [string, () => Settings | Promise<Settings>][] = [
    ['PGPASSWORD', () => ({ DATABASE_URL: url(), PGPASSWORD: PASSWORD })],
    [
      'PGPASSWORD_FILE',
      async () => ({ DATABASE_URL: url(), PGPASSWORD_FILE: await passwordFile() }),
    ],
    ['DATABASE_URL_FILE', async () => ({ DATABASE_URL_FILE: await urlFile() })],
  ];

  it.each(ways)('with %s, the commands work', async (_way, settings) => {
    expect(await runInProcess(['token', 'create', 'greenhouse'], await settings())).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^plantstore_\w+\n$/),
      stderr: expect.stringMatching(/^.*"msg":"Created the token greenhouse \(\w+\)\."\}\n$/),
    });
  });

  it('with PGPASSWORD_FILE, the service works', async () => {
    const env = { DATABASE_URL: url(), PGPASSWORD_FILE: await passwordFile() };
    const create = await runInProcess(['token', 'create', 'greenhouse'], env);
    const service = runService(env);
    try {
      const built = { command: service, url: await urlOf(service) };
      expect((await postPlant(built.url, create.stdout.trim(), 1)).status).toBe(200);
      await stop(built);
    } finally {
      await end(service);
    }
    expect(service.stdout + service.stderr).not.toContain(PASSWORD);
    expect(service.stdout + service.stderr).not.toContain(encodeURIComponent(PASSWORD));
  });

  it('the command line of TypeORM works', async () => {
    const env = { DATABASE_URL: url(), PGPASSWORD_FILE: await passwordFile() };
    expect(await runInProcess(['migrate'], env)).toMatchObject({ exitCode: 0 });
    const show = runCommand(
      [
        'node_modules/typeorm/cli.js',
        '-d',
        join(ROOT, 'dist/database/data-source.js'),
        'migration:show',
      ],
      env,
    );
    expect(await show.exit()).toBe(0);
    expect(show.stdout).toContain('[X] 1 CreatePlants');
  });

  it('with a wrong password, the start ends in one line, which does not repeat it', async () => {
    const env = { DATABASE_URL: url(), PGPASSWORD: 'hunter2' };
    const { exitCode, stdout, stderr } = await runInProcess(['migrate'], env);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(
      /^The database at 127\.0\.0\.1:\d+\/garden cannot be used: .*28P01.*\n$/,
    );
    expect(stderr).not.toContain('hunter2');
  });
});
