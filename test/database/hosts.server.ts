import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { postPlant } from '../setup/http/post-plant.js';
import { end, runService, startOn, stop, urlOf } from '../setup/service/built-service.js';
import { createToken } from '../setup/service/tokens.js';
import { runCommand, type Command } from '../setup/process/command.js';
import { findFreePorts } from '../setup/process/ports.js';
import { startPostgresServer, type PostgresServer } from '../setup/database/postgres-server.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { until } from '../setup/time/until.js';

const exec = promisify(execFile);

describe('an address with two hosts, a primary and its standby', () => {
  // Closed before the servers.
  const resources = useResources();
  let primary: PostgresServer;
  let standby: PostgresServer;

  beforeEach(async () => {
    primary = await startPostgresServer();
    standby = await startPostgresServer({ primary });
  });
  afterEach(async () => {
    await standby.close();
    await primary.close();
  });

  const addressOf = (...servers: { port: number }[]) =>
    `postgres://plants@${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}/plants_test`;

  const run = (url: string): Command => {
    const command = runService({ DATABASE_URL: url });
    resources.defer(() => end(command));
    return command;
  };

  const replicated = () =>
    until(async () => {
      const [row] = await primary.query<{ behind: boolean }>(
        'SELECT replay_lsn IS DISTINCT FROM pg_current_wal_lsn() AS behind FROM pg_stat_replication',
      );
      return row?.behind === false;
    });

  const storedIds = async (server: PostgresServer) =>
    (
      await server.query<{ id: string }>('SELECT id::text AS id FROM plants ORDER BY plants.id')
    ).map(({ id }) => id);

  it('finds the primary behind the standby, for commands and the service', async () => {
    const url = `${addressOf(standby, primary)}?target_session_attrs=read-write`;
    const token = await createToken(url);
    const service = await startOn(url);
    expect((await postPlant(service.url, token, 1)).status).toBe(200);
    expect(await storedIds(primary)).toEqual(['1']);
    await stop(service);
  });

  it.each(['kill', 'freeze'] as const)(
    'goes on with the promoted standby after a %s of the primary, and back, without a restart',
    async (how) => {
      const url = addressOf(primary, standby);
      const token = await createToken(url);
      const service = await startOn(url, { DATABASE_TIMEOUT_MS: '2000' });
      const stored = (id: number) =>
        until(async () => (await postPlant(service.url, token, id)).status === 200);
      await stored(1);
      await replicated();
      await primary[how]();
      const response = await postPlant(service.url, token, 2);
      expect(response.status).toBe(503);
      expect(await response.json()).toMatchObject({ error: 50300 });
      await standby.query('SELECT pg_promote()');
      await stored(2);
      expect(await storedIds(standby)).toEqual(['1', '2']);
      // The old primary is back and takes writes, too: the service stays where it is.
      await (how === 'kill' ? primary.start() : primary.thaw());
      await stored(3);
      expect(await storedIds(standby)).toEqual(['1', '2', '3']);
      await standby.kill();
      await stored(4);
      expect(await storedIds(primary)).toContain('4');
      await stop(service);
    },
  );

  it('says of each server why it cannot be used, until one can', async () => {
    const [port] = (await findFreePorts(1)) as [number];
    const url = addressOf(standby, { port }).replace('plants@', 'plants:hunter2@');
    const service = run(url);
    await service.waitFor(
      new RegExp(
        `Waiting for the database at 127.0.0.1:${standby.port},127.0.0.1:${port}/plants_test: ` +
          `no server takes writes \\(127.0.0.1:${standby.port}: read-only; ` +
          `127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}\\)"`,
      ),
    );
    await standby.query('SELECT pg_promote()');
    await stop({ command: service, url: await urlOf(service) });
    expect(service.stdout + service.stderr).not.toContain('hunter2');
  });

  it('ends at once when a server refuses the login', async () => {
    const url = addressOf(standby, primary).replace('plants@', 'nobody:hunter2@');
    const service = run(url);
    expect(await service.exit()).toBe(1);
    expect(service.stderr).toMatch(
      /^The database at .* cannot be used: no server can be used \(.*role "nobody" does not exist \(28000\); .*\)\n$/,
    );
    expect(service.stdout + service.stderr).not.toContain('hunter2');
  });
});

const folders = useResources();

it('checks the certificate of a server against the host that it connects to', async () => {
  const dir = await temporaryFolder(folders);
  const [key, certificate] = [join(dir, 'key.pem'), join(dir, 'certificate.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const files = ['-keyout', key, '-out', certificate];
  await exec('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...subject, ...files]);
  const server = await startPostgresServer({
    settings: { ssl: 'on', ssl_cert_file: certificate, ssl_key_file: key },
  });
  try {
    const create = (...hosts: string[]) => {
      const list = hosts.map((host) => `${host}:${server.port}`).join(',');
      const url = `postgres://plants@${list}/plants_test?sslmode=verify-full&sslrootcert=${certificate}`;
      return runCommand(['dist/cli.js', 'token', 'create', 'tls'], { DATABASE_URL: url });
    };
    expect(await create('127.0.0.1', 'localhost').exit()).toBe(0);
    const refused = create('127.0.0.1', '127.0.0.1');
    expect(await refused.exit()).toBe(1);
    expect(refused.stderr).toMatch(
      /cannot be used: no server can be used \(127\.0\.0\.1:\d+: Hostname\/IP does not match certificate's altnames/,
    );
  } finally {
    await server.close();
  }
});
