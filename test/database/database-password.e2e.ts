import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runInProcess } from '../setup/service/cli.js';
import { startPostgresServer, type PostgresServer } from '../setup/database/postgres-server.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';

/** Cannot be in an address as it is. */
const PASSWORD = 'p/a#s%s@w:o?r d';

const resources = useResources();

describe('a server that asks for a password', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgresServer();
    const rules = join(server.data, 'pg_hba.conf');
    const rule = 'host all gardener 127.0.0.1/32 scram-sha-256\n';
    await writeFile(rules, rule + (await readFile(rules, 'utf8')));
    await server.administer('SELECT pg_reload_conf()');
    await server.administer(`CREATE ROLE gardener LOGIN PASSWORD '${PASSWORD}'`);
    await server.administer('CREATE DATABASE garden OWNER gardener');
  });
  afterAll(() => server.close());

  const urlWith = (credentials: string) =>
    `postgres://${credentials}@127.0.0.1:${server.port}/garden`;

  it.each([
    ['PGPASSWORD_FILE', () => ({ DATABASE_URL: urlWith('gardener') }), () => PASSWORD],
    ['DATABASE_URL_FILE', () => ({}), () => urlWith(`gardener:${encodeURIComponent(PASSWORD)}`)],
  ])('gets it from %s', async (name, others, secret) => {
    const file = join(await temporaryFolder(resources), 'secret');
    await writeFile(file, `${secret()}\n`);
    const env = { ...others(), [name]: file };
    expect(await runInProcess(['token', 'create', 'greenhouse'], env)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^plantstore_\w+\n$/),
    });
  });

  it('gets a wrong one: the start ends in one line, which does not repeat it', async () => {
    const env = { DATABASE_URL: urlWith('gardener'), PGPASSWORD: 'hunter2' };
    const { exitCode, stdout, stderr } = await runInProcess(['migrate'], env);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(
      /^The database at 127\.0\.0\.1:\d+\/garden cannot be used: .*28P01.*\n$/,
    );
    expect(stderr).not.toContain('hunter2');
  });
});
