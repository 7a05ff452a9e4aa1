import { afterEach, describe, expect, it } from '@jest/globals';
import { holdClock } from '../../test/setup/time/clock.js';
import { importWithWaits } from '../../test/setup/time/held-waits.js';
import { useResources } from '../../test/setup/jest/resources.js';
import type { Reply } from '../../test/setup/database/postgres-messages.js';
import {
  openScriptedPostgres,
  type Script,
  type ScriptedPostgres,
} from '../../test/setup/database/scripted-postgres.js';
import { patientConfig } from '../../test/setup/database/patient.js';
import type { DatabaseConfig } from '../config/config.js';
import { SESSION_SETTINGS } from './session.js';

/** Waits take no time, and set the clock ahead. */
const advance = holdClock();
const { addressOf, prepareDatabase } = await importWithWaits(
  () => import('./prepare-database.js'),
  advance,
);

/** The statement that takes the lock of migrations. */
const LOCK = 'SELECT pg_try_advisory_xact_lock($1) AS "isOurs"';

const fail = (code: string) => ({ error: { code } });

const resources = useResources();
let server: ScriptedPostgres;
let messages: string[] = [];

afterEach(() => {
  messages = [];
});

async function start(script: Script): Promise<void> {
  server = await openScriptedPostgres(resources, script);
}

/** Starts a database without tables, with other replies to some statements. */
function startEmpty(replies: Record<string, () => Reply> = {}): Promise<void> {
  const all: Record<string, () => Reply> = {
    'SHOW server_encoding': () => ({ rows: [{ server_encoding: 'UTF8' }] }),
    [LOCK]: () => ({ rows: [{ isOurs: true }] }),
    ...replies,
  };
  return start({ run: ({ text }) => all[text]?.() });
}

const prepare = (settings: Partial<DatabaseConfig> = {}) =>
  prepareDatabase(patientConfig({ url: server.url, ...settings }), (it) => void messages.push(it));

const sent = (pattern: RegExp) => server.statements.filter(({ text }) => pattern.test(text));

describe('prepareDatabase', () => {
  it('waits while another process migrates, and then does the rest', async () => {
    const isFree = [false, true];
    await startEmpty({ [LOCK]: () => ({ rows: [{ isOurs: isFree.shift()! }] }) });
    await prepare();
    expect(messages).toEqual([
      `Waiting for the database at 127.0.0.1:${server.port}/plants: ` +
        'another process is bringing the schema up to date',
    ]);
    expect(sent(/CREATE TABLE plants/)).toHaveLength(1);
  });

  it('migrates with a limit of its own to statements, but not to the waits for locks', async () => {
    await startEmpty();
    await prepare({ timeout: 1500, startTimeout: 60_000 });
    expect(sent(/^SET LOCAL/)[0]!.text).toMatch(
      /statement_timeout = [56]\d{4}; SET LOCAL lock_timeout = 750$/,
    );
  });

  it('tries once a second until the time is over, and logs each new reason once', async () => {
    await start({ login: ({ serial }) => fail(serial < 3 ? '57P03' : '53300') });
    await expect(prepare({ startTimeout: 3000 })).rejects.toMatchObject({
      name: 'StartError',
      message: `The database at 127.0.0.1:${server.port}/plants could not be used within 3000 ms: no (53300)`,
      cause: { code: '53300' },
    });
    expect(server.connections).toHaveLength(4);
    expect(messages).toEqual([
      expect.stringMatching(/^Waiting .+: no \(57P03\)$/),
      expect.stringMatching(/^Waiting .+: no \(53300\)$/),
    ]);
  });

  it.each([
    ['the password is wrong', '28P01', 3000],
    ['a table is missing', '42P01', 3000],
    ['the operator gave it no time', '57P03', 0],
  ])('does not wait if %s (%s)', async (_reason, code, startTimeout) => {
    await start({ login: () => fail(code) });
    await expect(prepare({ startTimeout })).rejects.toMatchObject({
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
    await startEmpty({ 'SHOW server_encoding': () => ({ rows: [{ server_encoding: 'LATIN1' }] }) });
    await expect(prepare()).rejects.toThrow(
      "cannot be used: it uses the encoding LATIN1. Create it with ENCODING 'UTF8'.",
    );
    expect(sent(/CREATE/)).toEqual([]);
  });
});

it.each([
  ['postgres://u:p@h:1/db?application_name=x', false, 'h:1/db'],
  ['postgres://u@h', false, 'h:5432/u'],
  ['postgres://', false, 'localhost:5432/'],
  ['postgres://postgres@/postgres?host=/proc/1/fd/2', true, '/data'],
])('a message names %s, embedded: %p, as %s', (url, isEmbedded, address) => {
  expect(addressOf(patientConfig({ url, isEmbedded, dataDir: '/data' }))).toBe(address);
});
