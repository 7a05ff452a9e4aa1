import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import pg from 'pg';
import { PLANT_FIELDS } from '../../src/plants/dto/plant.js';
import { OPTIONAL_FIELDS } from '../setup/model/plant.js';
import { openTestDatabase } from '../setup/database/database.js';
import { readStoredPlants, type StoredPlant } from '../setup/database/stored-plants.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { attempt } from '../setup/process/attempts.js';
import { runInProcess, type Surroundings } from '../setup/service/cli.js';
import { startService, type TestService } from '../setup/service/service.js';
import { endTimersAtOnce } from '../setup/time/service-timers.js';
import { until } from '../setup/time/until.js';

const FIXTURE = new URL('./plants.csv', import.meta.url).pathname;

const LINE_INTERVAL_MS = 5000;

/** The plants of one statement. */
const CHUNK = 1000;

const MANY = 5 * CHUNK;

/** So long that much less than `MANY` is read while one statement is waited for. */
const LONG_NAME = 'a'.repeat(600);

const EXPECTED_HEADER = `The first line must be the header ${PLANT_FIELDS.join()} (in any order, separated by commas, semicolons or tabs; ${OPTIONAL_FIELDS.join(' and ')} may be missing), or a plant as JSON.`;

const ONE_PER_LINE =
  'JSON must have one plant per line. This command writes it so, with jq 1.7 or newer (older ones round long ids):';

const CONVERT =
  'Save the file as UTF-8 (in Excel: "CSV UTF-8"), or convert it from its encoding, such as with: iconv -f';

const SAFE =
  'Running the same command again is safe: plants that are stored already are not stored twice.';

const latin1 = (text: string) => Buffer.from(text, 'latin1');
const utf16 = (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le');

const csvOf = (count: number) =>
  `id,name\n${Array.from({ length: count }, (_, i) => `${i + 1},${LONG_NAME}\n`).join('')}`;

const resources = useResources();

let service: TestService;
let folder: string;
let file: string;

beforeAll(async () => {
  service = await startService();
});
beforeEach(async () => {
  folder = await temporaryFolder(resources);
  file = join(folder, 'plants');
});
afterEach(async () => {
  service.proxy.restore();
  await service.database.query('TRUNCATE plants');
});
afterAll(() => service.close());

const environment = () => ({
  DATABASE_URL: service.proxy.url,
  PLANT_STORE_CALLER_DIR: folder,
});

const load = (args: string[], surroundings: Surroundings = {}, env = environment()) =>
  runInProcess(['plants', 'load', ...args], env, surroundings);

async function loadText(text: string | Buffer, surroundings?: Surroundings) {
  await writeFile(file, text);
  return load(['plants'], surroundings);
}

/** What is said before the plants are read. */
function loading(name = file): string {
  const { host, pathname } = new URL(service.proxy.url);
  return `Loading ${name} into the database at ${host}${pathname}.\n`;
}

it('stores the plants of a CSV file exactly, in the database that it names without its password, and says what was stored before', async () => {
  const lines = (await readFile(FIXTURE, 'utf8')).trimEnd().split('\n').slice(1);
  const expected = lines
    .map((line) => line.split(',') as [string, string, string])
    .map(([id, name, tag]): StoredPlant => ({ id, name, ...(tag !== '' && { tag }) }))
    .sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
  const url = new URL(service.proxy.url);
  url.username ||= 'postgres';
  url.password = 'hunter2';
  expect(await load([FIXTURE], {}, { ...environment(), DATABASE_URL: url.href })).toEqual({
    exitCode: 0,
    stdout: '',
    stderr: `${loading(FIXTURE)}992 stored, 0 stored before, 0 refused.\n`,
  });
  expect(await load([FIXTURE])).toMatchObject({
    exitCode: 0,
    stderr: `${loading(FIXTURE)}0 stored, 992 stored before, 0 refused.\n`,
  });
  expect(await service.storedPlants()).toEqual(expected);
});

it('reads CSV as spreadsheets and databases write it', async () => {
  const csv = [
    '\uFEFFtag,id,name',
    'Acer,9223372036854775807,"Acer ""Crimson King"", red"',
    ',-9223372036854775808,"two\nlines"',
    ' a ,9007199254740993, Ácer 🌱\u2028',
    '',
    '{},0,""',
  ].join('\r\n');
  expect(await loadText(csv)).toMatchObject({ exitCode: 0, stdout: '' });
  expect(await service.storedPlants()).toEqual([
    { id: '-9223372036854775808', name: 'two\nlines' },
    { id: '0', name: '', tag: '{}' },
    { id: '9007199254740993', name: ' Ácer 🌱\u2028', tag: ' a ' },
    { id: '9223372036854775807', name: 'Acer "Crimson King", red', tag: 'Acer' },
  ]);
});

it.each([
  ['tabs', '\uFEFFid\tname\ttag\r\n1\ta;b\t" c,d\t"\r\n2\t e \t\r\n'],
  [
    'semicolons, and the line that names them to Excel',
    'sep=;\r\nid;name;tag\r\n1;"a;b"; c,d\t\r\n2; e ;\r\n',
  ],
  ['a header in any case, with blanks', ' ID , Name,TAG\t\n1,a;b," c,d\t"\n2, e ,\n'],
  [
    'rows and a header with empty cells',
    ',,,\n \nid,name,tag,,\n1,a;b," c,d\t",,\n,,,,\n\n2, e ,,, \n"","",""\n2, e ,\n , ,\n',
  ],
  ['lines that end unlike the header', 'id,name,tag\n1,a;b," c,d\t"\r\n2, e ,\n'],
  ['gzip of several members', [gzipSync('id,name,tag\n1,a;b,'), gzipSync('" c,d\t"\n2, e ,')]],
])('reads %s, and every value as it is', async (_what, content) => {
  const text = typeof content === 'string' ? content : Buffer.concat(content);
  expect(await loadText(text)).toMatchObject({ exitCode: 0, stdout: '' });
  expect(await service.storedPlants()).toEqual([
    { id: '1', name: 'a;b', tag: ' c,d\t' },
    { id: '2', name: ' e ' },
  ]);
});

it.each([
  [
    'an empty tag only where it is written as ""',
    'id,name,tag\n1,a,""\n2,b,\n"3",,"c"\n',
    ['', undefined, 'c'],
  ],
  [
    'no tag where the header shows that every value is in quotes',
    '"id","name","tag"\n"1","a",""\n"3","","c"\n',
    [undefined, 'c'],
  ],
])('reads %s', async (_what, csv, tags) => {
  expect(await loadText(csv)).toMatchObject({ exitCode: 0 });
  expect((await service.storedPlants()).map(({ tag }) => tag)).toEqual(tags);
});

it('stores a tag that may mean no tag as it is, and says how many there are', async () => {
  const csv = 'id,name,tag\n1,a,NULL\n2,b,\\N\n3,c,na\n4,d,"NaN"\n5,NULL,\n6,f,NAN2\n1,a,NULL\n';
  const { exitCode, stderr } = await loadText(csv);
  expect(exitCode).toBe(0);
  expect(stderr).toContain(
    '6 stored, 1 stored before, 0 refused.\n' +
      `Plants with the text NULL, \\N, NA or NaN as their ${OPTIONAL_FIELDS.join(' or ')}, which is stored as it is: 5.`,
  );
  const tags = (await service.storedPlants()).map(({ tag }) => tag);
  expect(tags).toEqual(['NULL', '\\N', 'na', 'NaN', undefined, 'NAN2']);
});

it('reads NDJSON under the rules of a request', async () => {
  const lines = [
    '\uFEFF{"id":9223372036854775807,"name":"a\u2028b","tag":""}',
    ' {"tag":"t","id":9007199254740993, "name":"\\u00c1"}\r',
    '',
    '{"id":12.5e1,"name":"c"}',
    '{"id":1}',
    '{oops}',
    '{"id":125,"name":"d"}',
    '{"id":125,"name":"c"}',
  ];
  const { exitCode, stdout, stderr } = await loadText(lines.join('\n'));
  expect(exitCode).toBe(1);
  expect(stderr).toBe(`${loading()}3 stored, 1 stored before, 3 refused.\n`);
  expect(stdout.split('\n')).toEqual([
    'line,error,message',
    expect.stringMatching(/^5,40005,"The body is not a NewPlant: name .+"$/),
    expect.stringMatching(/^6,40004,"The body cannot be read as JSON.+"$/),
    expect.stringMatching(/^7,40006,"The id 125 belongs to a different plant\..+"$/),
    '',
  ]);
  expect(await service.storedPlants()).toEqual([
    { id: '125', name: 'c' },
    { id: '9007199254740993', name: 'Á', tag: 't' },
    { id: '9223372036854775807', name: 'a\u2028b', tag: '' },
  ]);
});

it('writes the lines of CSV that are refused to standard output, each with the number of its last line', async () => {
  const csv = '\n,\nid,name,tag\n1,a,\n9.22337E+18,b,\n3,c\n1,"other\n\n",\r\n2,d,\n,e,\n1,a,\n';
  // The numbers are those of the unpacked file.
  const { exitCode, stdout, stderr } = await loadText(gzipSync(csv));
  expect(exitCode).toBe(1);
  expect(stderr).toBe(`${loading()}2 stored, 1 stored before, 4 refused.\n`);
  expect(stdout.split('\n')).toEqual([
    'line,error,message',
    '5,40005,"The id ""9.22337E+18"" is not a 64-bit integer in digits without leading zeros. Spreadsheets change long ids."',
    '6,40005,"The line has more or fewer values than the header."',
    expect.stringMatching(/^9,40006,"The id 1 belongs to a different plant\..+"$/),
    expect.stringMatching(/^11,40005,"The id """" is not a 64-bit integer/),
    '',
  ]);
  expect(await service.storedPlants()).toEqual([
    { id: '1', name: 'a' },
    { id: '2', name: 'd' },
  ]);
});

it('moves all plants from one database to another, as plants export writes them, from standard input', async () => {
  await loadText('id,name,tag\n1,"a ""b"", c\nd",""\n2,,\n3,🌱,\n');
  const other = await openTestDatabase();
  resources.defer(() => other.close());
  const { stdout: typed } = await runInProcess(['plants', 'export'], environment());
  const { exitCode, stderr } = await load(
    ['-'],
    { typed },
    { ...environment(), DATABASE_URL: other.url },
  );
  expect(exitCode).toBe(0);
  expect(stderr).toContain('Loading Standard input into the database at ');
  expect(stderr).toContain('3 stored, 0 stored before, 0 refused.\n');
  expect(await readStoredPlants(other, 'ORDER BY plants.id')).toEqual(await service.storedPlants());
});

it.each(['', '\uFEFFname,id,tag\r\n\r\n'])('says that there are no plants in %j', async (text) => {
  expect(await loadText(text)).toEqual({
    exitCode: 0,
    stdout: '',
    stderr: `${loading()}${file} contains no plants.\n`,
  });
});

it('refuses only the plants that the database does not accept', async () => {
  await service.database.query(`ALTER TABLE plants ADD CONSTRAINT no_x CHECK (name <> 'x')`);
  try {
    const { exitCode, stdout, stderr } = await loadText('id,name\n1,a\n2,x\n3,b\n2,c\n1,a\n');
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(
      /^line,error,message\n3,50000,"The database refused this plant: .*no_x.*"\n$/,
    );
    expect(stderr).toContain('3 stored, 1 stored before, 1 refused.\n');
    expect((await service.storedPlants()).map(({ id }) => id)).toEqual(['1', '2', '3']);
  } finally {
    await service.database.query('ALTER TABLE plants DROP CONSTRAINT no_x');
  }
});

/**
 * Lets the second statement of a load of so many plants wait for another session, which stores one of them.
 *
 * @returns a function that waits until the load waits, and one that ends the other session
 */
async function holdSecondChunk(count: number) {
  await writeFile(file, csvOf(count));
  const other = new pg.Client({ connectionString: service.database.url });
  await other.connect();
  resources.defer(() => other.end());
  // The settings of the database may end sessions that hold a lock.
  await other.query(`SET idle_in_transaction_session_timeout = 0; BEGIN`);
  await other.query(`INSERT INTO plants (id, name) VALUES (${CHUNK + 1}, 'other')`);
  const waiting = async () =>
    service.database.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%INTO plants%'`,
    );
  return {
    untilItWaits: async () => {
      await until(async () => (await waiting()).length > 0);
      return (await waiting())[0]!.pid;
    },
    release: () => other.query('ROLLBACK'),
  };
}

it.each<[string, (pid: number) => unknown, RegExp]>([
  [
    'the database goes away',
    async (pid) => {
      service.proxy.cut();
      // A statement that is in flight may end, although its client is gone: here it does not.
      await service.database.query('SELECT pg_terminate_backend($1, 30000)', [pid]);
    },
    /^The database cannot be used: .+\.$/,
  ],
  [
    'a plant stays locked until the time of its statement is up',
    (pid) => service.database.query('SELECT pg_cancel_backend($1)', [pid]),
    /^The database cannot be used: canceling statement .+\.$/,
  ],
])(
  'ends when %s, says up to which line plants are stored, and can be run again',
  async (_when, fail, reason) => {
    const { untilItWaits, release } = await holdSecondChunk(3 * CHUNK);
    const loaded = load(['plants']);
    await fail(await untilItWaits());
    const { exitCode, stdout, stderr } = await loaded;
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr.split('\n')).toEqual([
      loading().trimEnd(),
      expect.stringMatching(reason),
      `Up to line 1001: 1,000 stored, 0 stored before, 0 refused. ${SAFE}`,
      '',
    ]);
    await release();
    service.proxy.restore();
    expect((await service.storedPlants()).length).toBe(CHUNK);
    const { stderr: again } = await load(['plants']);
    expect(again).toContain('\n2,000 stored, 1,000 stored before, 0 refused.\n');
  },
);

it('ends after a signal when the statement in flight has ended, says up to which line plants are stored, and can be run again', async () => {
  const { untilItWaits, release } = await holdSecondChunk(MANY);
  const command = attempt(resources, ['dist/cli.js', 'plants', 'load', file], environment());
  await untilItWaits();
  // Here, because the first one must come before the statement ends.
  command.process.kill('SIGINT');
  // npm sends a signal again that the terminal sent to all.
  const repeating = setInterval(() => command.process.kill('SIGINT'), 1);
  resources.defer(() => clearInterval(repeating));
  await release();
  expect(await command.exit()).toBe(130);
  expect(command.stdout).toBe('');
  const [, line] =
    /^Interrupted\.\nUp to line (\d+): .+ stored before, 0 refused\. Running the same command again is safe: .+\n$/m.exec(
      command.stderr,
    )!;
  const stored = Number(line) - 1;
  expect(stored).toBeLessThan(MANY);
  expect((await service.storedPlants()).length).toBe(stored);
  const [rest, before] = [MANY - stored, stored].map((number) => number.toLocaleString('en'));
  const { stderr } = await load(['plants']);
  expect(stderr).toContain(`\n${rest} stored, ${before} stored before, 0 refused.\n`);
});

it('says up to which line plants are stored before one that is not UTF-8', async () => {
  const text = Buffer.concat([Buffer.from(csvOf(MANY)), latin1('0,\xc1cer\n')]);
  const { exitCode, stderr } = await loadText(text);
  expect(exitCode).toBe(1);
  const [, line, stored] = /^Up to line (\d+): ([\d,]+) stored, /m.exec(stderr)!;
  expect(stderr).toContain(`${file}: Line ${MANY + 2} is not UTF-8.`);
  expect((await service.storedPlants()).length).toBe(Number(line) - 1);
  expect(Number(stored!.replace(',', ''))).toBe(Number(line) - 1);
});

it('shows a bar on a terminal, with the share of the file', async () => {
  const { stderr } = await load([FIXTURE], { isTerminal: true });
  expect(stderr).toContain('-------------------- 0 %, 0 stored, 0 stored before, 0 refused');
  expect(stderr).toContain('==================== 100 %, 992 stored, 0 stored before, 0 refused');
  const piped = await load(['-'], { isTerminal: true, typed: '{"id":1,"name":"a"}' });
  expect(piped.stderr).toContain('1 stored, 0 stored before, 0 refused');
  expect(piped.stderr).not.toContain('%');
});

it('writes a line every five seconds elsewhere', async () => {
  const { release } = await holdSecondChunk(3 * CHUNK);
  const restoreTimers = endTimersAtOnce(LINE_INTERVAL_MS);
  try {
    let isReleased = false;
    const onMessage = (text: string) => {
      if (isReleased || !text.includes('1,000 stored, 0 stored before, 0 refused\n')) return;
      isReleased = true;
      void release();
    };
    expect(await load(['plants'], { onMessage })).toMatchObject({ exitCode: 0, stdout: '' });
    expect(isReleased).toBe(true);
  } finally {
    restoreTimers();
  }
});

it.each<[string, string | Buffer, string]>([
  ['is of another kind', '<html>"a" b</html>\n', 'The first line must be'],
  ['is an array', '[{"id":1,"name":"a"}]', `${ONE_PER_LINE} jq -c '.[]' FILE`],
  [
    'has a comma after each plant',
    '{"id":1,"name":"a"},\n',
    'JSON must have one plant per line, without a comma after it',
  ],
  ['is printed over many lines', '{\n "id":1,"name":"a"}', `${ONE_PER_LINE} jq -c . FILE`],
  ['is a list over many lines', '{"plants":[\n{"id":1,"name":"a"}]}', ONE_PER_LINE],
  ['has an unknown column', 'id;name;Tags\n1;a;b\n', `${EXPECTED_HEADER} It is "id;name;Tags".`],
  ['has a column twice', 'id,name,name\n1,a,b\n', EXPECTED_HEADER],
  ['has no names', 'id,tag\n1,a\n', EXPECTED_HEADER],
  ['is a workbook', 'PK\x03\x04xl', 'The file is a ZIP archive or a workbook (.xlsx, .ods). Save'],
  ['is cut off in gzip', gzipSync('id,name\n1,a\n').subarray(0, 20), 'The gzip file is cut off.'],
  [
    'is not UTF-8, after a megabyte of empty lines',
    latin1(`${'\n'.repeat(2 ** 20)}id,name\n1,\xc1cer\n`),
    `Line 1048578 is not UTF-8. ${CONVERT} windows-1252`,
  ],
  ['ends in a character', latin1('id,name\n1,\xc3'), 'Line 2 is not UTF-8'],
  ['is UTF-16', utf16('id\tname\n1\ta\n'), `The file is UTF-16. ${CONVERT} utf-16`],
  ['is UTF-16 of the other order', utf16('id,name\n1,a\n').swap16(), 'The file is UTF-16'],
  [
    'lacks a quote',
    'id,name\n\n1,"a\n2,b\n',
    'Line 4 is not CSV: a quote is missing in it or before it, or is not written twice.',
  ],
  ['has a quote in a name', 'id,name\r\n\r\n1,a "b"\r\n', 'Line 3 is not CSV'],
  // Gzip of a few kilobytes may hold it.
  ['has a line without an end', gzipSync(Buffer.alloc(33 * 2 ** 20)), 'Line 1 is too long.'],
])('refuses a file that %s', async (_description, text, reason) => {
  const { exitCode, stdout, stderr } = await loadText(text);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toContain(file);
  expect(stderr).toContain(reason);
  expect(await service.storedPlants()).toEqual([]);
});

it.each([
  [['missing.csv'], 1, 'missing.csv cannot be read: there is no such file or folder. Name'],
  [['.'], 1, 'cannot be read: it is a folder. Name'],
  [[], 2, "missing required argument 'file'"],
])('%j ends with exit code %d and the reason', async (args, exitCode, reason) => {
  const result = await load(args);
  expect(result).toMatchObject({ exitCode, stdout: '' });
  expect(result.stderr).toContain(reason);
});
