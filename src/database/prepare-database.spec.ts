import { afterEach, describe, expect, it } from '@jest/globals';
import { emptyDatabase, LOCK, stepsOf } from '../../test/database/empty-database-script.js';
import { holdClock } from '../../test/setup/time/clock.js';
import { importWithWaits } from '../../test/setup/time/held-waits.js';
import { useResources } from '../../test/setup/jest/resources.js';
import {
  openScriptedPostgres,
  type Script,
  type ScriptedPostgres,
} from '../../test/setup/database/scripted-postgres.js';
import { patientConfig } from '../../test/setup/database/patient.js';
import type { DatabaseConfig } from '../config/config.js';
import { StartError } from '../errors/start-error.js';
import { SESSION_SETTINGS } from './session.js';

/** Waits take no time, and set the clock ahead. */
const advance = holdClock();
const { prepareDatabase } = await importWithWaits(() => import('./prepare-database.js'), advance);

const fail = (code: string) => ({ error: { code } });

const resources = useResources();
let server: ScriptedPostgres;
let messages: string[] = [];

const log = (message: string) => void messages.push(message);

afterEach(() => {
  messages = [];
});

async function start(script: Script): Promise<void> {
  server = await openScriptedPostgres(resources, script);
}

function configFor(settings: Partial<DatabaseConfig> = {}): DatabaseConfig {
  return patientConfig({ url: server.url, ...settings });
}

const prepare = (settings?: Partial<DatabaseConfig>) => prepareDatabase(configFor(settings), log);

describe('prepareDatabase', () => {
  it('waits while another process migrates, and then does the rest', async () => {
    const isFree = [false, true];
    await start(emptyDatabase({ [LOCK]: () => ({ rows: [{ isOurs: isFree.shift()! }] }) }));
    await prepare();
    expect(messages).toEqual([
      `Waiting for the database at 127.0.0.1:${server.port}/plants: ` +
        'another process is bringing the schema up to date',
    ]);
    const created = stepsOf(server).indexOf('CREATE TABLE plants');
    expect(
      stepsOf(server)
        .slice(0, created)
        .filter((step) => step === 'lock'),
    ).toHaveLength(2);
  });

  it('migrates with a limit of its own to statements, but not to the waits for locks', async () => {
    await start(emptyDatabase());
    await prepare({ timeout: 1500, startTimeout: 60_000 });
    const limits = server.statements.find(({ text }) => text.startsWith('SET LOCAL'));
    expect(limits!.text).toMatch(/statement_timeout = [56]\d{4}; SET LOCAL lock_timeout = 750$/);
  });

  it('tries once a second while the database is away, until the time is over', async () => {
    await start({ login: () => fail('57P03') });
    await expect(prepare({ startTimeout: 3000 })).rejects.toMatchObject({
      name: 'StartError',
      message: `The database at 127.0.0.1:${server.port}/plants could not be used within 3000 ms: no (57P03)`,
      cause: { code: '57P03' },
    });
    expect(server.connections).toHaveLength(4);
  });

  it('waits as long as it should when the date is set ahead', async () => {
    await start({
      ...emptyDatabase(),
      login: ({ serial }) => (serial < 3 ? fail('57P03') : undefined),
    });
    await prepareDatabase(configFor({ startTimeout: 3000 }), (message) => {
      log(message);
      void advance.changeDate(3_600_000);
    });
    expect(messages).toHaveLength(1);
    expect(stepsOf(server)).toContain('CREATE TABLE plants');
  });

  it('logs at once when the reason changes', async () => {
    await start({ login: ({ serial }) => fail(serial < 3 ? '57P03' : '53300') });
    await expect(prepare({ startTimeout: 4000 })).rejects.toBeInstanceOf(StartError);
    expect(messages).toEqual([
      expect.stringMatching(/: no \(57P03\)$/),
      expect.stringMatching(/: no \(53300\)$/),
    ]);
  });

  it.each(['28P01', '42P01'])('does not wait if no retry can help (%s)', async (code) => {
    await start({ login: () => fail(code) });
    await expect(prepare()).rejects.toMatchObject({
      name: 'StartError',
      message: `The database at 127.0.0.1:${server.port}/plants cannot be used: no (${code})`,
    });
    expect(server.connections).toHaveLength(1);
    expect(messages).toEqual([]);
  });

  it.each<[string, Script]>([
    ['after the login', { settings: { [SESSION_SETTINGS]: 'silence' } }],
    ['later', { run: () => new Promise(() => undefined) }],
  ])('gives up a server that does not respond %s, and its connections', async (_when, script) => {
    await start(script);
    await expect(prepare({ timeout: 500, startTimeout: 2000 })).rejects.toMatchObject({
      name: 'StartError',
      message: `The database at 127.0.0.1:${server.port}/plants could not be used within 2000 ms: it does not respond to a statement`,
    });
    expect(messages).toEqual([expect.stringMatching(/^Waiting .+ does not respond/)]);
    await Promise.all(server.connections.map(({ closed }) => closed));
  });

  it('refuses a database of another encoding', async () => {
    await start(
      emptyDatabase({ 'SHOW server_encoding': () => ({ rows: [{ server_encoding: 'LATIN1' }] }) }),
    );
    await expect(prepare()).rejects.toThrow(
      "cannot be used: it uses the encoding LATIN1. Create it with ENCODING 'UTF8'.",
    );
    expect(stepsOf(server)).toEqual([]);
  });

  it.each<[string, (port: number) => Partial<DatabaseConfig>, (port: number) => string]>([
    [
      'without the password',
      (port) => ({ url: `postgres://u:p@127.0.0.1:${port}/db?application_name=x` }),
      (port) => `127.0.0.1:${port}/db`,
    ],
    [
      'with the name of the user where it is that of the database',
      (port) => ({ url: `postgres://u@127.0.0.1:${port}` }),
      (port) => `127.0.0.1:${port}/u`,
    ],
    [
      'without a name if there is none',
      (port) => ({ url: `postgres://127.0.0.1:${port}` }),
      (port) => `127.0.0.1:${port}/`,
    ],
    [
      'as the data folder if it is embedded',
      () => ({ isEmbedded: true, dataDir: '/d' }),
      () => '/d',
    ],
  ])('names the address of the database %s', async (_how, settings, address) => {
    await start({ login: () => fail('28P01') });
    await expect(prepare(settings(server.port))).rejects.toThrow(
      `The database at ${address(server.port)} cannot be used`,
    );
  });
});
