import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, isIPv6, type AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { listen } from '../../src/app.js';
import { useResources } from '../setup/jest/resources.js';
import { attempt } from '../setup/process/attempts.js';
import { end, runService, stop, urlOf } from '../setup/service/built-service.js';
import { ROOT, runBefore, runCommand, type Command } from '../setup/process/command.js';
import { makeDataDir, postgresPidIn, removeDataDir } from '../setup/service/data-dir.js';
import { fetchDocumented, noResponse } from '../setup/http/fetch-documented.js';
import { postPlant } from '../setup/http/post-plant.js';
import { beginPlant, bodyOf, openConnection, readResponses } from '../setup/http/raw-http.js';
import { runInProcess } from '../setup/service/cli.js';
import { isRunning } from '../setup/process/processes.js';
import { until } from '../setup/time/until.js';

const MAIN = 'dist/main.js';
const CLI = 'dist/cli.js';

const resources = useResources();

/** The output of a test goes to a pipe, which the process takes for a terminal with this. */
const ON_TERMINAL = runBefore('process.stdout.isTTY = true');

const curlOf = async (service: Command) => (await service.waitFor(/^curl .*$/m))[0];

/** Runs a curl line as it is, and returns the body of the response. */
async function curl(line: string): Promise<string> {
  const withHead = `${line} -sS --include`;
  const { stdout } = await promisify(execFile)('sh', ['-c', withHead], { encoding: 'latin1' });
  return bodyOf(stdout, 'POST /plants');
}

/** Sends the plant of the curl line with another tag, which is refused if the plant is stored. */
async function expectStored(service: Command): Promise<void> {
  const other = (await curlOf(service)).replace('"tag": "Equisetum"', '"tag": "other"');
  expect(JSON.parse(await curl(other))).toMatchObject({ error: 40006 });
}

/** The last two log entries of a service, without their times. */
function endOf({ stdout }: Command): unknown[] {
  const entries = stdout.trimEnd().split('\n').slice(-2);
  return entries.map((entry) => ({ ...(JSON.parse(entry) as object), time: undefined }));
}

/** Where Postgres keeps the state of its files. */
const controlFile = (postgres: string) => join(postgres, 'global/pg_control');

/** DB_SHUTDOWNED of Postgres (pg_control.h), and its place behind three other fields. */
const SHUT_DOWN = 1;
const STATE_AT = 16;

/** The state of the database in a data folder, such as SHUT_DOWN. */
const stateIn = (dataDir: string) =>
  readFileSync(controlFile(join(dataDir, 'postgres'))).readInt32LE(STATE_AT);

/**
 * A script that stops the clock of a service at the first SIGINT, sets it ahead at each one, so that the second and the
 * third come 99 and 100 milliseconds after the first, and says when the service has handled the second one.
 */
const SIGNALS_APART = `
  const first = Math.ceil(performance.now());
  const times = [first, first + 99, first + 100];
  process.on('SIGINT', () => {
    const time = times.shift();
    performance.now = () => time;
    if (times.length === 1) setImmediate(() => process.stderr.write('SIGINT again'));
  });`;

/** Standard output is no terminal here, so it carries only the log; the token is on standard error. */
async function expectJsonLog(service: Command): Promise<void> {
  await fetchDocumented(`${await urlOf(service)}/health/live`);
  await service.waitFor(/"route":"\/health\/live".*\n/);
  const entries = service.stdout.trimEnd().split('\n');
  expect(entries.map((entry) => JSON.parse(entry) as object)).toContainEqual(
    expect.objectContaining({ route: '/health/live', status: 200 }),
  );
  expect(service.stderr).toMatch(/Token +plantstore_[0-9A-Za-z]{49}\n/);
}

describe('the address of a service', () => {
  const server = createServer();

  afterEach(async () => {
    server.close();
    await once(server, 'close');
  });

  const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
    addresses!.some(({ address }) => address === '::1'),
  );

  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.1'],
    ...(hasIpv6 ? [['::', '::1'] as const] : []),
  ])('is %s as HOST says, and clients reach it at %s', async (host, reachable) => {
    const app = { getHttpServer: () => server } as unknown as NestExpressApplication;
    const url = await listen(app, { host, port: 0 });
    const { address, port } = server.address() as AddressInfo;
    expect(address).toBe(host);
    expect(url).toBe(`http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`);
    const client = connect(port, reachable);
    await once(client, 'connect');
    client.destroy();
  });
});

describe('a service on the embedded database', () => {
  let dataDir: string;
  let service: Command;
  /** The response to the first curl line. */
  let created: string;

  const start = (env: Record<string, string> = {}) => runService({ DATA_DIR: dataDir, ...env });
  const postgresPid = () => postgresPidIn(dataDir);
  /** Kills the service, and waits until its Postgres has ended with it. */
  const kill = async () => {
    const pid = await postgresPid();
    await end(service);
    await until(() => !isRunning(pid));
  };
  const token = (...args: string[]) => runInProcess(['token', ...args], { DATA_DIR: dataDir });

  beforeAll(async () => {
    dataDir = await makeDataDir();
    service = start();
    created = await curl(await curlOf(service));
  });
  afterAll(async () => {
    await end(service);
    await removeDataDir(dataDir);
  });

  it('prints the address of Swagger UI and a curl line that works unchanged, and a log of JSON lines', async () => {
    expect(created).toBe('{"name":"Equisetum fluviatile","tag":"Equisetum"}');
    const [, docs] = await service.waitFor(/Swagger UI +(\S+)/);
    expect((await fetchDocumented(docs!)).status).toBe(200);
    await expectJsonLog(service);
  });

  it('accepts a token that "token create" prints, alone, also with another temporary folder', async () => {
    const create = runCommand([CLI, 'token', 'create', 'greenhouse'], {
      DATA_DIR: dataDir,
      TMPDIR: dataDir,
    });
    expect(await create.exit()).toBe(0);
    expect(create.stderr).toMatch(
      /^\{.+"tokenId":"[0-9a-f]{12}","msg":"Created the token greenhouse \([0-9a-f]{12}\)\."\}\n$/,
    );
    expect(create.stdout).toMatch(/^plantstore_[0-9A-Za-z]{49}\n$/);
    const response = await postPlant(await urlOf(service), create.stdout.trim(), 1);
    expect(response.status).toBe(200);
  });

  it('refuses a second service on its data folder in one line, also with another temporary folder', async () => {
    const second = attempt(resources, [MAIN], { DATA_DIR: dataDir, PORT: '0', TMPDIR: dataDir });
    expect(await second.exit()).toBe(1);
    const [pid] = readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n');
    expect(second.stderr).toMatch(
      new RegExp(
        `^Opening .+\n${dataDir} is in use by another Plant Store \\(its Postgres, which ends with it, is the process ${pid}\\)\\. Stop that one, or set DATA_DIR to another folder\\.\n$`,
      ),
    );
  });

  it('lets the command line of TypeORM use its database beside it', async () => {
    await urlOf(service);
    const options = ['-d', join(ROOT, 'dist/database/data-source.js')];
    const show = attempt(resources, ['node_modules/typeorm/cli.js', ...options, 'migration:show'], {
      DATA_DIR: dataDir,
    });
    expect(await show.exit()).toBe(0);
    expect(show.stdout).toContain('[X] 1 CreatePlants');
  });

  it('keeps plants after kill -9, and the token that the first start printed', async () => {
    const old = await curlOf(service);
    await kill();
    // The variable is one for clients of Postgres, which must not change anything.
    service = start({ PGOPTIONS: '-c default_transaction_read_only=on' });
    await expectStored(service);
    expect(await curlOf(service)).toBe(old.replace(/http:\/\/[^/]+/, await urlOf(service)));
  });

  it('keeps plants after a graceful stop, and prints the token that "token rotate development" made', async () => {
    await expectJsonLog(service);
    const old = await curlOf(service);
    expect(await token('create', 'development')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('./plant-store token rotate development'),
    });
    const rotated = await token('rotate', 'development', '--grace', '0', '--yes');
    expect(rotated).toMatchObject({ exitCode: 0 });
    const pid = await postgresPid();
    await stop({ command: service, url: await urlOf(service) });
    expect(isRunning(pid)).toBe(false);
    expect(endOf(service)).toEqual([
      { level: 'info', signal: 'SIGTERM', msg: 'The Plant Store stops: it received SIGTERM.' },
      { level: 'info', msg: 'The Plant Store has stopped.' },
    ]);
    service = start();
    expect(await curlOf(service)).toContain(`Bearer ${rotated.stdout.trim()}`);
    await expectStored(service);
    const before = old.replace(/http:\/\/[^/]+/, await urlOf(service));
    expect(JSON.parse(await curl(before))).toMatchObject({ error: 40101 });
  });

  it('on a terminal prints the token and a log for people, both on standard output', async () => {
    await kill();
    service = start(ON_TERMINAL);
    await fetchDocumented(`${await urlOf(service)}/health/live`);
    await service.waitFor(/\/health\/live.*\n/);
    expect(service.stdout).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: 200 GET \/health\/live \d/m);
    expect(service.stdout).toMatch(/Token +plantstore_[0-9A-Za-z]{49}\n/);
    expect(service.stderr).toBe('');
  });

  it('says how to get a new token for development when that is revoked', async () => {
    expect(await token('revoke', 'development', '--yes')).toMatchObject({ exitCode: 0 });
    const revoked = [
      [['create'], 'start the service again, which makes a new one.'],
      [['rotate', '--yes'], 'The next start of the service makes and prints one.'],
    ] as const;
    for (const [[command, ...options], message] of revoked) {
      expect(await token(command, 'development', ...options)).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining(message),
      });
    }
  });

  it('completes the request in flight when Ctrl-C stops it, and closes the database only then', async () => {
    const { stdout } = await token('create', 'in flight');
    const url = await urlOf(service);
    const body = '{"id":2,"name":"in flight"}';
    const socket = await openConnection(Number(new URL(url).port));
    await beginPlant(socket, stdout.trim(), body);
    service.process.kill('SIGINT');
    await until(() =>
      fetchDocumented(`${url}/health/live`).then(
        () => false,
        (error: unknown) => noResponse(error) === undefined,
      ),
    );
    socket.write(body);
    expect(await readResponses(socket)).toMatchObject([{ status: 200 }]);
    expect(await service.exit()).toBe(0);
    expect(stateIn(dataDir)).toBe(SHUT_DOWN);
  });

  it('ignores the signal that stops it when it comes again within a tenth of a second, and ends at once when it comes after that', async () => {
    if (service.process.exitCode === null) await kill();
    service = start({ SHUTDOWN_DELAY_MS: '600000', ...runBefore(SIGNALS_APART) });
    await expectStored(service);
    const url = await urlOf(service);
    service.process.kill('SIGINT');
    await until(async () => (await fetchDocumented(`${url}/health/ready`)).status !== 200);
    service.process.kill('SIGINT');
    await service.waitFor(/SIGINT again/);
    service.process.kill('SIGINT');
    expect(await service.exit()).toBe(1);
    expect(service.stdout).toContain('"msg":"The Plant Store stops: it received SIGINT."');
    expect(endOf(service).at(-1)).toEqual({
      level: 'warn',
      signal: 'SIGINT',
      msg: 'The Plant Store ends without waiting for requests: it received a second signal, SIGINT.',
    });
  });
});
