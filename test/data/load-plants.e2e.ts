import { execFile } from 'node:child_process';
import { readdir, readFile, readlink, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { runInProcess, type Surroundings } from '../setup/service/cli.js';
import { runBefore, runCommand } from '../setup/process/command.js';
import { holdClock } from '../setup/time/clock.js';
import { startGateway, type Gateway } from '../setup/http/gateway.js';
import { endTimersAtOnce, holdServiceTimers } from '../setup/time/service-timers.js';
import type { StoredPlant } from '../setup/database/stored-plants.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const FIXTURE = new URL('./plants.csv', import.meta.url).pathname;

/** `Retry-After` of the service and of the gateway. */
const RETRY_AFTER_MS = 1000;

const LINE_INTERVAL_MS = 5000;

const EXPECTED_HEADER =
  'The first line must be the header id,name,tag (in lower case, in any order, separated by commas; tag may be missing), or a plant as JSON.';

const CONVERT =
  'Save the file as UTF-8 (in Excel: "CSV UTF-8"), or convert it from its encoding, such as with: iconv -f';

const latin1 = (text: string) => Buffer.from(text, 'latin1');
const utf16 = (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le');

/** The text between the last two moves of the cursor to the start of the line. */
const lastState = (stderr: string) => stderr.split('\u001b[1G').at(-2);

/** @returns the path of a new file with the first 100 plants, for tests that need no more */
async function writeSomeLines(folder: string): Promise<string> {
  const path = join(folder, 'some.csv');
  const lines = (await readFile(FIXTURE, 'utf8')).split('\n');
  await writeFile(path, lines.slice(0, 101).join('\n'));
  return path;
}

/** The plants of a file, as they are stored. */
async function readPlants(file: string): Promise<StoredPlant[]> {
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n').slice(1);
  return lines
    .map((line) => line.split(',') as [string, string, string])
    .map(([id, name, tag]): StoredPlant => ({ id, name, ...(tag !== '' && { tag }) }))
    .sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
}

const resources = useResources();

describe('plants load', () => {
  let service: TestService;
  let gateway: Gateway;
  let folder: string;
  let fixture: StoredPlant[];
  let loading: Promise<unknown>;

  beforeAll(async () => {
    service = await startService();
    fixture = await readPlants(FIXTURE);
    expect(fixture).toHaveLength(992);
  });
  beforeEach(async () => {
    gateway = await startGateway(service.url);
    folder = await temporaryFolder(resources);
  });
  afterEach(async () => {
    service.proxy.restore();
    // After a test that failed, it may still wait for the database.
    await loading;
    await gateway.close();
    await service.database.query('TRUNCATE plants');
  });
  afterAll(() => service.close());

  const environment = () => ({
    PLANT_STORE_TOKEN: service.token,
    PLANT_STORE_CALLER_DIR: folder,
  });
  const load = (args: string[], surroundings: Surroundings = {}, env = environment()) => {
    const command = ['plants', 'load', '--url', gateway.url, ...args];
    const outcome = runInProcess(command, env, surroundings);
    loading = outcome.catch(() => undefined);
    return outcome;
  };
  const loadText = async (text: string | Buffer, ...args: string[]) => {
    await writeFile(join(folder, 'plants'), text);
    return load(['plants', ...args]);
  };
  const start = (file = FIXTURE, env = {}) =>
    runCommand(['dist/cli.js', 'plants', 'load', file, '--url', gateway.url], {
      ...environment(),
      ...env,
    });
  const someLines = () => writeSomeLines(folder);
  const listOf = (name: string) => readFile(join(folder, name), 'utf8').catch(() => undefined);

  it('stores 992 plants of a CSV file exactly, and again', async () => {
    for (const _run of [1, 2]) {
      expect(await load([FIXTURE, '--url', service.url])).toEqual({
        exitCode: 0,
        stdout: '',
        stderr: expect.stringMatching(/^992 plants stored, 0 lines refused, in \d+\.\d s\.$/m),
      });
      expect(await service.storedPlants()).toEqual(fixture);
    }
    expect(await listOf(`${FIXTURE}.refused.csv`)).toBeUndefined();
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
    expect(await loadText(csv)).toMatchObject({ exitCode: 0 });
    expect(await service.storedPlants()).toEqual([
      { id: '-9223372036854775808', name: 'two\nlines' },
      { id: '0', name: '', tag: '{}' },
      { id: '9007199254740993', name: ' Ácer 🌱\u2028', tag: ' a ' },
      { id: '9223372036854775807', name: 'Acer "Crimson King", red', tag: 'Acer' },
    ]);
  });

  it('reads a line break of one kind after a header with the other kind', async () => {
    expect(await loadText('id,name,tag\n1,a,b\r\n2,c,\r\n')).toMatchObject({ exitCode: 0 });
    expect(await service.storedPlants()).toEqual([
      { id: '1', name: 'a', tag: 'b' },
      { id: '2', name: 'c' },
    ]);
  });

  it('reads an empty tag only where it is written as ""', async () => {
    expect(await loadText('id,name,tag\n1,a,""\n2,b,\n"3",,"c"\n')).toMatchObject({ exitCode: 0 });
    expect(await service.storedPlants()).toEqual([
      { id: '1', name: 'a', tag: '' },
      { id: '2', name: 'b' },
      { id: '3', name: '', tag: 'c' },
    ]);
  });

  it('reads no tag where the header shows that every value is in quotes', async () => {
    expect(await loadText('"id","name","tag"\n"1","a",""\n"2","","b"\n')).toMatchObject({
      exitCode: 0,
    });
    expect(await service.storedPlants()).toEqual([
      { id: '1', name: 'a' },
      { id: '2', name: '', tag: 'b' },
    ]);
  });

  it('sends the lines of NDJSON as they are', async () => {
    const lines = [
      '{"id":9223372036854775807,"name":"a\u2028b","tag":""}',
      ' {"tag":"t","id":9007199254740993, "name":"\\u00c1"}\r',
      '',
      '{"id":12.5e1,"name":"c"}',
    ];
    expect(await loadText(lines.join('\n'))).toMatchObject({ exitCode: 0 });
    expect(gateway.requests.map(({ body }) => body).sort()).toEqual(
      lines.filter((line) => line !== '').sort(),
    );
    expect(await service.storedPlants()).toEqual([
      { id: '125', name: 'c' },
      { id: '9007199254740993', name: 'Á', tag: 't' },
      { id: '9223372036854775807', name: 'a\u2028b', tag: '' },
    ]);
  });

  it('reads standard input, and decodes characters that two chunks share', async () => {
    const lines = Array.from({ length: 400 }, (_, i) => `${i},${'🌱'.repeat(100)}`);
    const typed = `id,name\n${lines.join('\n')}\n`;
    expect(await load(['-'], { typed })).toMatchObject({ exitCode: 0 });
    const names = await service.database.query('SELECT DISTINCT name FROM plants');
    expect(names).toEqual([{ name: '🌱'.repeat(100) }]);
  });

  it('loads a pipe that has a name, whose size nobody knows', async () => {
    const pipe = join(folder, 'pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const loaded = load(['pipe'], { isTerminal: true });
    await writeFile(pipe, 'id,name\n1,a\n');
    expect(await loaded).toMatchObject({
      exitCode: 0,
      stderr: expect.not.stringMatching(/%|left/),
    });
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'a' }]);
  });

  it('lists refused lines, and the corrected file removes the list', async () => {
    const csv = (id: string) => `id,name,tag\n1,a,\n${id},b,\n3,c\n1,"other\n",\n2,d,\n`;
    const list = join(folder, 'plants.refused.csv');
    expect(await loadText(csv('9.22337E+18'))).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/^2 plants stored, 3 lines refused, in \d+\.\d s; .+\n$/),
    });
    expect((await readFile(list, 'utf8')).split('\n').sort()).toEqual([
      '',
      '3,40005,"The id ""9.22337E+18"" is not a 64-bit integer in digits without leading zeros. Spreadsheets change long ids."',
      '4,40005,"The line has more or fewer values than the header."',
      expect.stringMatching(/^5,40006,"The id 1 belongs to a different plant\..+"$/),
      'line,error,message',
    ]);
    expect(gateway.requests).toHaveLength(3);
    expect(await loadText('id,name\n1,a\n')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringMatching(/^1 plant stored, 0 lines refused, in \d+\.\d s\.$/m),
    });
    expect(await listOf('plants.refused.csv')).toBeUndefined();
    expect(await loadText('id,name\n01,a\n', '--refused', 'other.csv')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(
        /^0 plants stored, 1 line refused, in .+; the list of refused lines is .+other\.csv\.$/m,
      ),
    });
    expect(await listOf('other.csv')).toContain('2,40005,');
    expect(await listOf('plants.refused.csv')).toBeUndefined();
  });

  it('counts the lines of the file, with every kind of line break', async () => {
    const csv =
      '\uFEFF\r\nid,name\r\n\r\n01,"two\r\nlines"\r\n\n02,"a\rb"\n"03","a\n\n\nb"\r\n04,\n';
    expect(await loadText(csv)).toMatchObject({ exitCode: 1 });
    const list = (await listOf('plants.refused.csv'))!.split('\n');
    expect(list.map((text) => text.split(',')[0])).toEqual(['line', '4', '7', '8', '12', '']);
    const json = '\uFEFF\n{"id":1,"name":"a"}\r\n\n{oops}';
    expect(await loadText(json)).toMatchObject({ exitCode: 1 });
    expect(await listOf('plants.refused.csv')).toContain('\n4,40004,');
  });

  it.each(['', '\n \n', 'id,name\n', '\uFEFFname,id,tag\r\n\r\n'])(
    'says that there are no plants in %j',
    async (text) => {
      expect(await loadText(text)).toEqual({
        exitCode: 0,
        stdout: '',
        stderr: `${join(folder, 'plants')} contains no plants. Nothing was sent.\n`,
      });
      expect(await load(['-'], { typed: text })).toMatchObject({
        exitCode: 0,
        stderr: 'Standard input contains no plants. Nothing was sent.\n',
      });
      expect(gateway.requests).toEqual([]);
    },
  );

  it('needs no place for a list of refused lines before a line is refused', async () => {
    const env = { ...environment(), PLANT_STORE_CALLER_DIR: join(folder, 'missing') };
    const typed = '{"id":1,"name":"a"}\n';
    expect(await load(['-'], { typed }, env)).toMatchObject({ exitCode: 0 });
    const { exitCode, stderr } = await load(['-'], { typed: `${typed}{"id":2}\n` }, env);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^Line 2 was refused \(40005: .+\nThe list of refused lines, .+missing\/stdin\.refused\.csv, cannot be written: there is no such file or folder\. Name another file with --refused\.\nUp to line 2: /,
    );
    expect(stderr).not.toContain('the list of refused lines is');
  });

  it('reads no more than the beginning of an earlier list', async () => {
    const list = join(folder, 'plants.refused.csv');
    await writeFile(list, 'line,error,message\n');
    await truncate(list, 2 ** 32);
    expect(await loadText('id,name\n1,a\n')).toMatchObject({ exitCode: 0 });
    expect(await listOf('plants.refused.csv')).toBeUndefined();
  });

  it('keeps the list of an earlier run until a run has sent all lines, and every other file', async () => {
    await loadText('id,name\n01,a\n');
    const list = await listOf('plants.refused.csv');
    expect(list).toContain('2,40005,');
    const wrong = { ...environment(), PLANT_STORE_TOKEN: 'wrong' };
    const repeated = await load([FIXTURE, '--refused', 'plants.refused.csv'], {}, wrong);
    expect(repeated).toMatchObject({ exitCode: 1 });
    expect(await listOf('plants.refused.csv')).toBe(list);

    const file = join(folder, 'plants');
    await writeFile(file, 'id,name\n02,a\n3,b\n');
    const early = await load([file], {}, wrong);
    const part =
      /the list of refused lines is .+\/(plants\.refused\.csv\.[\da-f-]{36}\.part)\./.exec(
        early.stderr,
      )![1]!;
    expect(await listOf('plants.refused.csv')).toBe(list);
    expect(await listOf(part)).toContain('2,40005,"The id ""02""');
    expect(await loadText('id,name\n2,a\n')).toMatchObject({ exitCode: 0 });
    expect(await listOf('plants.refused.csv')).toBeUndefined();

    await writeFile(join(folder, 'notes.txt'), 'precious');
    expect(await load([FIXTURE, '--refused', 'notes.txt'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('is not a list of refused lines'),
    });
    expect(await listOf('notes.txt')).toBe('precious');
  });

  it('writes a list to a device, and never replaces or removes the device', async () => {
    const device = join(folder, 'device');
    // If it were replaced, that would be the link.
    await symlink('/dev/null', device);
    for (const [id, exitCode] of [
      ['01', 1],
      ['1', 0],
    ] as const) {
      const loaded = await loadText(`id,name\n${id},a\n`, '--refused', 'device');
      expect(loaded).toMatchObject({ exitCode });
      expect(await readlink(device)).toBe('/dev/null');
    }
    expect((await readdir(folder)).sort()).toEqual(['device', 'plants']);
  });

  it.each<[string, (args: string[]) => Promise<{ exitCode: number | null; stderr: string }>]>([
    [
      'of two processes',
      async (args) => {
        const command = runCommand(['dist/cli.js', 'plants', 'load', ...args], environment());
        const exitCode = await command.exit();
        return { exitCode, stderr: command.stderr };
      },
    ],
    // In two containers with one shared folder, each command can be process 1.
    ['with the same process id', (args) => load(args)],
  ])(
    'never mixes the lists of two runs %s: the list of the one that ends last stays',
    async (_which, run) => {
      const path = join(folder, 'list.csv');
      const lines = Array.from({ length: 500 }, (_, i) => `0${i},a`).join('\n');
      const outcomes = await Promise.all(
        ['first', 'second'].map(async (name) => {
          const file = join(folder, name);
          await writeFile(file, `${name === 'first' ? '' : '\n'}id,name\n1,${name}\n${lines}\n`);
          return run([file, '--url', gateway.url, '--refused', path]);
        }),
      );
      for (const { exitCode, stderr } of outcomes) {
        expect(exitCode).toBe(1);
        expect(stderr).toContain(`the list of refused lines is ${path}.`);
      }
      const numbers = (await readFile(path, 'utf8')).match(/^\d+(?=,40005,)/gm)!.map(Number);
      const first = Math.min(...numbers);
      expect(numbers).toEqual(Array.from({ length: 500 }, (_, i) => first + i));
      expect((await readdir(folder)).sort()).toEqual(['first', 'list.csv', 'second']);
    },
  );

  it('lists what the service refuses in NDJSON, with its error', async () => {
    const result = await load(['-'], { typed: '{"id":1}\n{"id":1,"name":"a"}\n{oops}\n' });
    expect(result.exitCode).toBe(1);
    expect((await listOf('stdin.refused.csv'))!.split('\n').sort()).toEqual([
      '',
      expect.stringMatching(/^1,40005,"The body is not a NewPlant: name .+"$/),
      expect.stringMatching(/^3,40004,"The body cannot be read as JSON.+"$/),
      'line,error,message',
    ]);
  });

  it('says how far it came when it is interrupted, ends as by the signal, and can be run again', async () => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      const sent = gateway.requests.length;
      const interrupted = start();
      await until(() => gateway.requests.length > sent + 100);
      service.proxy.cut();
      // npm sends a signal again that the terminal sent to all.
      const repeating = setInterval(() => interrupted.process.kill(signal), 1);
      await interrupted.exit();
      clearInterval(repeating);
      expect(interrupted.process.signalCode).toBe(signal);
      expect(interrupted.stderr).toMatch(
        /Interrupted\.\nUp to line \d+: at least \d+ plants? stored, 0 lines refused, in .+ Running the same command again is safe: .+\n$/,
      );
      service.proxy.restore();
      expect((await service.storedPlants()).length).toBeLessThan(992);
    }
    expect(await load([FIXTURE, '--url', service.url])).toMatchObject({ exitCode: 0 });
    expect(await service.storedPlants()).toEqual(fixture);
  });

  it('ends with exit code 1 when it is interrupted, and survives the signal, as process 1 of a container', async () => {
    service.proxy.cut();
    const survive = "process.on('SIGTERM', () => undefined)";
    const interrupted = start(FIXTURE, runBefore(survive));
    await until(() => gateway.requests.length > 0);
    interrupted.process.kill('SIGTERM');
    expect(await interrupted.exit()).toBe(1);
    expect(interrupted.stderr).toMatch(/^Interrupted\.$/m);
  });

  it('shows a bar on a terminal', async () => {
    const { exitCode, stderr } = await load([await someLines()], { isTerminal: true });
    expect(exitCode).toBe(0);
    expect(stderr).toContain('---------- 0 stored, 0 refused');
    expect(lastState(stderr)).toMatch(/^========== 100 stored, 0 refused, .*100 %/);
    expect(stderr).toMatch(/100 plants stored, 0 lines refused, in .+\n$/);
    const piped = await load(['-'], { isTerminal: true, typed: '{"id":1,"name":"a"}' });
    expect(piped.stderr).toContain('1 stored, 0 refused');
    expect(piped.stderr).not.toMatch(/%|left/);
  });

  it('ends at the first 401, and repeats no token', async () => {
    const env = { ...environment(), PLANT_STORE_TOKEN: 'secret' };
    const { exitCode, stderr } = await load([FIXTURE], {}, env);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^The service refuses the token in PLANT_STORE_TOKEN \(40101\)\. Create another one: .+token create loader\n$/,
    );
    expect(stderr).not.toContain('secret');
    expect(gateway.requests.length).toBeLessThan(20);
  });

  it('says what is stored when the token is revoked during a load', async () => {
    await service.database.query('TRUNCATE plants');
    let responses = 0;
    gateway.onResponse = () => {
      if (++responses === 1)
        gateway.faults.push({
          status: 401,
          body: '{"error":40101,"message":"The token is not valid."}',
        });
    };
    const { exitCode, stderr } = await load([await someLines()]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^The service refuses the token .+\nUp to line \d+: at least \d+ plants? stored, .+ is safe: .+\n$/,
    );
  });

  it.each([
    ['', 'PLANT_STORE_TOKEN is not set'],
    ['two words', 'PLANT_STORE_TOKEN is not a token'],
    ['é', 'PLANT_STORE_TOKEN is not a token'],
  ])('asks for a token where PLANT_STORE_TOKEN is "%s"', async (token, reason) => {
    const env = { ...environment(), PLANT_STORE_TOKEN: token };
    const { exitCode, stderr } = await load([FIXTURE], {}, env);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(reason);
    expect(gateway.requests).toEqual([]);
  });

  it.each<[string, string | Buffer, string]>([
    ['is of another kind', '<html>"a" b</html>\n', 'The first line must be'],
    ['is an array', '[{"id":1,"name":"a"}]', 'The first line must be'],
    ['has semicolons', 'id;name;tag\n1;a;b\n', `${EXPECTED_HEADER} It is "id;name;tag".`],
    ['has an unknown column', 'id,name,Tag\n1,a,b\n', `${EXPECTED_HEADER} It is "id,name,Tag".`],
    ['has a column without a name', 'id,name,\n1,a,b\n', `${EXPECTED_HEADER} It is "id,name,".`],
    ['has a column twice', 'id,name,name\n1,a,b\n', 'The first line must be'],
    ['has no names', 'id,tag\n1,a\n', 'The first line must be'],
    ['has a quote before the header', '"\nid,name\n1,a\n', 'The first line must be'],
    [
      'is not UTF-8',
      latin1('id,name\n1,a\n2,\xc1cer\n'),
      `Line 3 is not UTF-8. ${CONVERT} windows-1252`,
    ],
    [
      'is not UTF-8 after a megabyte',
      latin1(`${'\n'.repeat(2 ** 20)}id,name\n1,\xc1cer\n`),
      'Line 1048578 is not UTF-8',
    ],
    ['ends in a character', latin1('id,name\n1,\xc3'), 'Line 2 is not UTF-8'],
    ['is UTF-16', utf16('id\tname\n1\ta\n'), `The file is UTF-16. ${CONVERT} utf-16`],
    ['is UTF-16 of the other order', utf16('id,name\n1,a\n').swap16(), 'The file is UTF-16'],
    ['has a BOM in NDJSON as UTF-16', utf16('{"id":1,"name":"a"}'), 'The file is UTF-16'],
    ['lacks a quote', 'id,name\n\n1,"a\n2,b\n', 'The plant that begins in line 3 is not CSV'],
    [
      'has a quote in a name',
      'id,name\r\n\r\n1,a "b"\r\n',
      'The plant that begins in line 3 is not CSV',
    ],
    [
      'has a name that goes on after a quote',
      'id,name\n1,"Acer\n\n2,"Betula"\n',
      'The plant that begins in line 2 is not CSV: a quote is missing, or is not written twice',
    ],
  ])('refuses a file that %s', async (_description, text, reason) => {
    const { exitCode, stderr } = await loadText(text);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`${join(folder, 'plants')}: ${reason}`);
    expect(await service.storedPlants()).toEqual([]);
    expect(await listOf('plants.refused.csv')).toBeUndefined();
  });

  it.each([
    [['missing.csv'], 1, 'missing.csv cannot be read: there is no such file or folder. Name'],
    [['.'], 1, 'cannot be read: it is a folder. Name'],
    [['some.csv', '--refused', 'some.csv'], 1, 'is not a list of refused lines'],
    [
      ['some.csv', '--refused', 'no/folder'],
      1,
      'cannot be written: there is no such file or folder. Name',
    ],
    [
      ['some.csv', '--refused', 'some.csv/list'],
      1,
      'cannot be written: a file in its path is not a folder. Name',
    ],
    [['some.csv', '--refused', '.'], 1, 'cannot be written: it is a folder. Name'],
    [['some.csv', '--refused', 'loop'], 1, 'loop exists, and is not a list of refused lines'],
    [
      ['some.csv', '--url', 'http://127.0.0.1:1'],
      1,
      '(ECONNREFUSED). Is the service running? Check --url or PLANT_STORE_URL.\n',
    ],
    [['some.csv', '--url', 'localhost:3000'], 2, 'Use an address such as'],
    [['some.csv', '--url', 'http://a:b@x'], 2, 'without user, password'],
    [['some.csv', '--url', 'http://secret@x'], 2, 'without user, password'],
    [['some.csv', '--url', 'http://x?a=b'], 2, 'without user, password, query and fragment'],
    [['some.csv', '--url', 'http://x#a'], 2, 'without user, password, query and fragment'],
    [['some.csv', '--token', 'x'], 2, "unknown option '--token'"],
    [[], 2, "missing required argument 'file'"],
    [['some.csv', 'some.csv'], 2, 'too many arguments'],
  ])('%j ends with exit code %d and the reason', async (args, exitCode, reason) => {
    // A copy, which a command that writes its list into its input would destroy.
    await someLines();
    await symlink('loop', join(folder, 'loop'));
    const result = await load(args);
    expect(result).toMatchObject({ exitCode, stdout: '' });
    expect(result.stderr).toContain(reason);
    expect(gateway.requests).toEqual([]);
  });

  it.each([
    [404, '<h1>Not found</h1>'],
    [200, '<h1>Log in</h1>'],
    [200, '{}'],
  ])('says that the URL is not that of a Plant Store: %d %s', async (status, body) => {
    gateway.faults.push({ status, body });
    expect(await loadText('id,name\n1,a\n')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(
        `did not respond as a Plant Store does (${status}). Check --url or PLANT_STORE_URL.\n`,
      ),
    });
    expect(await load([FIXTURE, '--url', `${gateway.url}/prefix/`])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('(40400: '),
    });
    expect(gateway.requests.length).toBeGreaterThan(1);
  });

  describe('whose time the test holds', () => {
    let restoreTimers = () => {};
    holdClock();
    afterEach(() => restoreTimers());

    it('waits for a database that is away, and repeats after 429, 502 and lost responses', async () => {
      restoreTimers = endTimersAtOnce(RETRY_AFTER_MS);
      service.proxy.cut();
      let responses = 0;
      gateway.onResponse = (status) => {
        if (responses++ > 0) return;
        expect(status).toBe(503);
        service.proxy.restore();
        const html = { status: 502, body: '<h1>Bad gateway</h1>' };
        gateway.faults.push({ status: 429, retryAfter: '1' }, 'lost', html, 'lost');
      };
      const file = await someLines();
      expect(await load([file])).toMatchObject({ exitCode: 0 });
      expect(gateway.faults).toEqual([]);
      expect(new Set(gateway.requests.map(({ body }) => body)).size).toBe(100);
      expect(await service.storedPlants()).toEqual(await readPlants(file));
    });

    it('writes lines with the reason for waiting', async () => {
      restoreTimers = endTimersAtOnce(RETRY_AFTER_MS, LINE_INTERVAL_MS);
      service.proxy.cut();
      const onMessage = (text: string) => {
        if (text.includes('waiting')) service.proxy.restore();
      };
      expect(await load([await someLines()], { onMessage })).toMatchObject({
        exitCode: 0,
        stdout: '',
        stderr: expect.stringMatching(/^0 stored, 0 refused, waiting: 50300: .+$/m),
      });
    });

    it('shows the reason for as long as it waits', async () => {
      const timers = holdServiceTimers(RETRY_AFTER_MS);
      restoreTimers = () => timers.restore();
      gateway.faults.push({ status: 429, retryAfter: '1' });
      const onMessage = (text: string) => {
        if (text.includes('waiting: ')) timers.advance(RETRY_AFTER_MS);
      };
      expect(await load([await someLines()], { isTerminal: true, onMessage })).toMatchObject({
        exitCode: 0,
        stderr: expect.stringMatching(/[-=] \d+ stored, 0 refused, waiting: 429/),
      });
    });
  });
});

// Passport's strategies are global, so a second service in this process must start after the first has ended.
describe('plants load at a service that accepts few requests', () => {
  holdClock();

  it('sends as many as it accepts', async () => {
    const service = await startService({ MAX_PENDING_REQUESTS: '8' });
    const gateway = await startGateway(service.url);
    const restoreTimers = endTimersAtOnce(RETRY_AFTER_MS);
    try {
      const file = await writeSomeLines(await temporaryFolder(resources));
      const result = await runInProcess(['plants', 'load', '--url', gateway.url, file], {
        PLANT_STORE_TOKEN: service.token,
      });
      expect(result).toMatchObject({ exitCode: 0 });
      expect(await service.storedPlants()).toEqual(await readPlants(file));
    } finally {
      restoreTimers();
      await gateway.close();
      await service.close();
    }
  });
});
