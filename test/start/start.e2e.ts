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
import { PATIENT } from '../setup/database/patient.js';
import { useResources } from '../setup/jest/resources.js';
import { attempt } from '../setup/process/attempts.js';
import { end, runService, urlOf } from '../setup/service/built-service.js';
import { NODE, ROOT, runBefore, runProgram, type Command } from '../setup/process/command.js';
import { makeDataDir, postgresPidIn, removeDataDir } from '../setup/service/data-dir.js';
import { fetchDocumented, noResponse } from '../setup/http/fetch-documented.js';
import { postPlant } from '../setup/http/post-plant.js';
import { beginPlant, bodyOf, openConnection, readResponses } from '../setup/http/raw-http.js';
import { runInProcess } from '../setup/service/cli.js';
import { METRICS_SETTING } from '../setup/service/metrics.js';
import { isRunning } from '../setup/process/processes.js';
import { until } from '../setup/time/until.js';

const resources = useResources();

/** The output of a test goes to a pipe, which the process takes for a terminal with this. */
const ON_TERMINAL = runBefore('process.stdout.isTTY = true');

/** Lets root send no signals to other users, such as the one that runs Postgres. */
const WITHOUT_KILL = process.geteuid!() === 0 ? ['setpriv', '--bounding-set=-kill'] : [];

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

/** DB_SHUTDOWNED of Postgres (pg_control.h), and its place behind three other fields. */
const SHUT_DOWN = 1;
const STATE_AT = 16;

/** The state of the database in a data folder, such as SHUT_DOWN. */
const stateIn = (dataDir: string) =>
  readFileSync(join(dataDir, 'postgres/global/pg_control')).readInt32LE(STATE_AT);

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

  const settings = () => ({ DATA_DIR: dataDir });
  const run = (...words: string[]) => runInProcess(words, settings());
  /** The curl line of another start, with the address of this one. */
  const withAddress = async (line: string) => line.replace(/http:\/\/[^/]+/, await urlOf(service));

  beforeAll(async () => {
    dataDir = await makeDataDir();
    const [program, ...args] = [...WITHOUT_KILL, ...NODE, join(ROOT, 'dist/main.js')];
    const env = { PORT: '0', ...METRICS_SETTING, ...PATIENT, ...settings() };
    service = runProgram(program, args, env);
    created = await curl(await curlOf(service));
  });
  afterAll(async () => {
    await end(service);
    await removeDataDir(dataDir);
  });

  it('prints the address of Swagger UI, a token and a curl line that works unchanged, and a log of JSON lines', async () => {
    expect(created).toBe('{"name":"Equisetum fluviatile","tag":"Equisetum"}');
    const [, docs] = await service.waitFor(/Swagger UI +(\S+)/);
    expect((await fetchDocumented(docs!)).status).toBe(200);
    await service.waitFor(/"route":"\/docs".*\n/);
    // Standard output is no terminal here, so it carries only the log.
    const entries = service.stdout.trimEnd().split('\n');
    expect(entries.map((entry) => JSON.parse(entry) as object)).toContainEqual(
      expect.objectContaining({ route: '/docs', status: 200 }),
    );
    expect(service.stderr).toMatch(/Token +plantstore_[0-9A-Za-z]{49}\n/);
  });

  it('accepts a token that a command beside it has created', async () => {
    const { exitCode, stdout } = await run('token', 'create', 'greenhouse');
    expect(exitCode).toBe(0);
    expect((await postPlant(await urlOf(service), stdout.trim(), 1)).status).toBe(200);
    expect(await run('check')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^All is well: /),
    });
  });

  it('keeps plants after kill -9, even if root may not send signals to other users, and on a terminal prints the token that "token rotate development" made, and a log for people', async () => {
    const old = await curlOf(service);
    const rotated = await run('token', 'rotate', 'development', '--grace', '0', '--yes');
    const pid = await postgresPidIn(dataDir);
    await end(service);
    await until(() => !isRunning(pid));
    service = runService({ ...settings(), ...ON_TERMINAL });
    await expectStored(service);
    expect(JSON.parse(await curl(await withAddress(old)))).toMatchObject({ error: 40101 });
    await service.waitFor(/ 401 POST \/plants.*\n/);
    expect(service.stdout).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: 400 POST \/plants \d/m);
    expect(service.stdout).toContain(`Token        ${rotated.stdout}`);
    expect(service.stderr).toBe('');
  });

  it('says how to get another token for development, also when that is revoked', async () => {
    expect(await run('token', 'create', 'development')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('./plant-store token rotate development'),
    });
    expect(await run('token', 'revoke', 'development', '--yes')).toMatchObject({ exitCode: 0 });
    const revoked = [
      [['create'], 'start the service again, which makes a new one.'],
      [['rotate', '--yes'], 'The next start of the service makes and prints one.'],
    ] as const;
    for (const [[command, ...options], message] of revoked) {
      expect(await run('token', command, 'development', ...options)).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining(message),
      });
    }
  });

  it('completes the request in flight when Ctrl-C stops it, closes the database only then, and keeps plants: a command reads them alone', async () => {
    const { stdout } = await run('token', 'create', 'in flight');
    const url = await urlOf(service);
    const pid = await postgresPidIn(dataDir);
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
    expect(isRunning(pid)).toBe(false);
    expect(stateIn(dataDir)).toBe(SHUT_DOWN);
    expect(service.stdout).toMatch(
      /The Plant Store stops: it received SIGINT\.[^]*The Plant Store has stopped\.\n$/,
    );
    // Its process must end, too, after the Postgres that it started.
    const alone = attempt(resources, ['dist/cli.js', 'plants', 'export'], settings());
    expect(await alone.exit()).toBe(0);
    expect(alone.stdout).toContain('\n2,in flight,');
  });
});
