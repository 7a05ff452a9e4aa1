import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { urlOf } from '../setup/service/built-service.js';
import { untilIdleAt } from '../setup/service/clean-state.js';
import { NODE, ROOT, runBefore, runProgram, type Command } from '../setup/process/command.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { METRICS_SETTING } from '../setup/service/metrics.js';
import { childrenOf, isRunning, sendSignal } from '../setup/process/processes.js';

const BUILD_SETTINGS = [
  'tsconfig.json',
  'src/tsconfig.build.json',
  'src/tsconfig.dev.json',
  'nest-cli.json',
];

/** The last step of a build, which takes time and is not the subject here. */
const PREPARATION = 'src/database/embedded/prepare-cluster.sh';

const NAME = `Anna's  "green\\house" $HOME * \`id\``;

describe('./plant-store', () => {
  let database: TestDatabase;
  let project: string;

  /** A copy of the project whose settings name the test's database, in a folder of its own. */
  async function copyProject(names: string[] = []): Promise<string> {
    // With spaces and a quote, as names of folders may have them.
    const folder = await mkdtemp(join(tmpdir(), "plant store's "));
    for (const name of ['plant-store', 'package.json', '.npmrc', ...names]) {
      await cp(join(ROOT, name), join(folder, name), { recursive: true });
    }
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, '.env'), `DATABASE_URL=${database.url}\n`);
    return folder;
  }

  beforeAll(async () => {
    database = await openTestDatabase();
    // As in the container: the build without its sources.
    project = await copyProject(['dist']);
    await finished(run(project, 'migrate'));
  });
  beforeEach(() => database.query('TRUNCATE access_tokens'));
  afterAll(async () => {
    await rm(project, { recursive: true });
    await database.close();
  });

  const run = (folder: string, ...args: string[]) =>
    runProgram(join(folder, 'plant-store'), args, {}, tmpdir());
  const tokens = () =>
    database.query<{ name: string; hours: number | null }>(
      `SELECT name, round(extract(epoch FROM expires_at - created_at) / 3600)::int AS hours
       FROM access_tokens ORDER BY created_at`,
    );

  it('passes options and special characters on unchanged, and uses the settings of its folder, from any folder, also through a symbolic link', async () => {
    const link = join(project, 'link');
    await symlink(join(project, 'plant-store'), link);
    const args = ['token', 'create', NAME, '--expires', '1d'];
    const create = await finished(runProgram(link, args, {}, tmpdir()));
    expect(create).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('Created the token '),
    });
    expect(create.stdout).toMatch(/^plantstore_[0-9A-Za-z]{49}\n$/);
    expect(await tokens()).toEqual([{ name: NAME, hours: 24 }]);
  });

  it('is what npm run token -- calls', async () => {
    const args = ['run', '-s', 'token', '--', 'create', NAME, '--expires', '1d'];
    const create = await finished(runProgram('npm', args, {}, project));
    expect(create).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('Created the token '),
    });
    expect(await tokens()).toEqual([{ name: NAME, hours: 24 }]);
  });

  it('finds files from the folder of the caller', async () => {
    const folder = await realpath(tmpdir());
    const load = runProgram(join(project, 'plant-store'), ['plants', 'load', 'no.csv'], {}, folder);
    expect(await finished(load)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(join(folder, 'no.csv')),
    });
  });

  it('passes exit codes and signals on', async () => {
    expect(await finished(run(project, 'token', 'destroy'))).toMatchObject({ exitCode: 2 });
    const waiting = runProgram(join(project, 'plant-store'), ['migrate'], {
      DATABASE_URL: 'postgres://me@127.0.0.1:1/plants',
    });
    await waiting.waitFor(/Waiting for the database/);
    waiting.process.kill('SIGTERM');
    await waiting.exit();
    expect(waiting.process.signalCode).toBe('SIGTERM');
  });

  it('runs the service in its own place, so that a signal to it lets the service end as it should', async () => {
    // With traces, because they have the version of the service. The collector is away, which prevents no graceful stop.
    const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
    const settings = { PORT: '0', ...METRICS_SETTING, ...collector };
    const start = runProgram(join(project, 'plant-store'), ['start'], settings);
    let children: number[] = [];
    try {
      const url = await urlOf(start);
      // A service in a process of its own would outlive the script.
      children = await childrenOf(start.process.pid!);
      await untilIdleAt(url);
      const exited = once(start.process, 'exit');
      start.process.kill('SIGTERM');
      expect(await exited).toEqual([0, null]);
      await start.exit();
      expect(start.stderr).toBe('');
      expect(start.stdout).toMatch(/stops: it received SIGTERM\.[^]*The Plant Store has stopped\./);
    } finally {
      for (const pid of children) sendSignal(pid, 'SIGKILL');
      start.process.kill('SIGKILL');
      await start.exit();
    }
  });

  it.each([[['start']], [['run', 'token', 'list']]])('ends with npm %j', async (args) => {
    const settings = { DATABASE_URL: 'postgres://me@127.0.0.1:1/plants', PORT: '0' };
    const npm = runProgram('npm', args, settings, project);
    let pids: number[] = [];
    try {
      await npm.waitFor(/Waiting for the database/);
      const children = await childrenOf(npm.process.pid!);
      // npm passes signals on to its child alone: a shell there would end, and leave the program behind.
      pids = [...children, ...(await Promise.all(children.map(childrenOf))).flat()];
      expect(pids).not.toEqual([]);
      // Not the event `close`, which a program that is left behind would delay.
      const exited = once(npm.process, 'exit');
      npm.process.kill('SIGTERM');
      await exited;
      expect(pids.filter(isRunning)).toEqual([]);
    } finally {
      for (const pid of pids) sendSignal(pid, 'SIGKILL');
      npm.process.kill('SIGKILL');
      await npm.exit();
    }
  });

  describe('on another Node', () => {
    let bare: string;

    beforeAll(async () => {
      bare = await copyProject(['dist']);
      // A module that is imported before the version is checked would not find its packages.
      await rm(join(bare, 'node_modules'));
    });
    afterAll(() => rm(bare, { recursive: true }));

    const [node, ...flags] = NODE;
    const runOn = (version: string, script: string, ...args: string[]) => {
      const versions = `{ value: { ...process.versions, node: '${version}' } }`;
      const env = runBefore(`Object.defineProperty(process, 'versions', ${versions})`);
      return finished(runProgram(node, [...flags, script, ...args], env, tmpdir()));
    };

    it.each([
      ['dist/main.js', '23.11.1'],
      ['dist/cli.js', '24.15.0'],
      ['dist/cli.js', '25.9.0'],
      ['dist/cli.js', '26.0.0'],
    ])(
      '%s ends at once if it is Node %s, which is too old, and says what to do',
      async (script, version) => {
        const stderr =
          `The Plant Store needs Node 24.16 or 26.1, or newer, and this is Node ${version}: use ./plant-store or npm start, which run the ` +
          'Node that "npm ci" installs, or install a newer one.\n';
        expect(await runOn(version, join(bare, script))).toEqual({
          exitCode: 1,
          stdout: '',
          stderr,
        });
      },
    );

    it.each(['24.16.0', '26.1.0', '100.0.0'])('runs on Node %s', async (node) => {
      expect(await runOn(node, join(project, 'dist/cli.js'), '--help')).toMatchObject({
        exitCode: 0,
        stderr: '',
      });
    });
  });

  it('runs the pinned Node, whatever Node comes first on the path of the caller', async () => {
    const folder = join(project, 'other node');
    await mkdir(folder);
    await writeFile(join(folder, 'node'), '#!/bin/sh\necho wrong\n', { mode: 0o755 });
    const path = `${folder}:${process.env['PATH']}`;
    const help = runProgram(join(project, 'plant-store'), ['--help'], { PATH: path });
    expect(await finished(help)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^Usage: \.\/plant-store /),
    });
  });

  it('prints its version, and lists "start" among its commands', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect(await finished(run(project, '--version'))).toEqual({
      exitCode: 0,
      stdout: `${version}\n`,
      stderr: '',
    });
    const { stdout } = await finished(run(project, '--help'));
    expect(stdout).toMatch(/^ {2}start +start the service/m);
  });

  it('names itself in its help', async () => {
    const { stdout } = await finished(run(project, 'token', 'create', '--help'));
    expect(stdout).toMatch(/^Usage: \.\/plant-store token create \[options\] <name>\n/);
  });

  it("runs on the machine's Node if the pinned one is missing, and says when the dependencies are missing", async () => {
    const bare = await copyProject(['dist']);
    try {
      await rm(join(bare, 'node_modules'));
      const path = `${dirname(process.execPath)}:${process.env['PATH']}`;
      const call = (...args: string[]) =>
        finished(runProgram(join(bare, 'plant-store'), args, { PATH: path }));
      const missing = await call('--help');
      expect(missing).toMatchObject({ exitCode: 1, stdout: '' });
      expect(missing.stderr).toContain('Run: npm ci');
      // There is no folder .bin, and the only package is the one that parses the command line: a command that needs no
      // database must load no other package.
      const modules = join(bare, 'node_modules');
      await mkdir(modules);
      await symlink(join(ROOT, 'node_modules/commander'), join(modules, 'commander'));
      expect(await call('--help')).toMatchObject({ exitCode: 0, stderr: '' });
      expect(await call('token', 'create')).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining('missing required argument'),
      });
      expect(await call('token', 'create', 'x', '--expires', 'soon')).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining('Use a number of up to four digits and a unit'),
      });
      expect(await call('token', 'rotate', 'plantstore_')).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining('not a name'),
      });
      expect(await call('plants', 'export', 'plants.txt')).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining('The name of the file must end with .csv'),
      });
    } finally {
      await rm(bare, { recursive: true });
    }
  });

  it.each([
    ['links it', ['.bin']],
    ['finds it where it can make no link', []],
  ])(
    'runs the pinned Node that npm 10 has installed without a link, and %s',
    async (_how, made) => {
      const bare = await copyProject(['dist']);
      try {
        const modules = join(bare, 'node_modules');
        await rm(modules);
        const writeNode = async (folder: string, text: string) => {
          await mkdir(join(bare, folder), { recursive: true });
          await writeFile(join(bare, folder, 'node'), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
        };
        await writeNode('of the machine', 'echo wrong');
        await writeNode('node_modules/node-for-another-system/bin', 'exit 126');
        await writeNode('node_modules/node-for-this-system/bin', `exec '${process.execPath}' "$@"`);
        for (const name of made) await mkdir(join(modules, name));
        await symlink(join(ROOT, 'node_modules/commander'), join(modules, 'commander'));
        const path = `${join(bare, 'of the machine')}:${process.env['PATH']}`;
        const help = runProgram(join(bare, 'plant-store'), ['--help'], { PATH: path });
        expect(await finished(help)).toMatchObject({
          exitCode: 0,
          stdout: expect.stringMatching(/^Usage: \.\/plant-store /),
        });
        for (const name of made) {
          expect(await readlink(join(modules, name, 'node'))).toBe(
            '../node-for-this-system/bin/node',
          );
        }
      } finally {
        await rm(bare, { recursive: true });
      }
    },
  );

  describe('with sources', () => {
    let folder: string;

    /** The build of the project, of small programs. */
    beforeAll(async () => {
      folder = await copyProject(BUILD_SETTINGS);
      await mkdir(join(folder, dirname(PREPARATION)), { recursive: true });
      await writeFile(join(folder, PREPARATION), '');
      await writeFile(join(folder, 'src/cli.ts'), "console.log('a result');\n");
      await writeFile(join(folder, 'src/main.ts'), "console.log('the log');\n");
    });
    afterAll(() => rm(folder, { recursive: true }));

    const command = (of = folder) => finished(run(of));
    const start = (of: string) => finished(runProgram('npm', ['start', '-s'], {}, of));
    const built = { exitCode: 0, stderr: 'Building the Plant Store …\n' };
    const notBuilt = { exitCode: 0, stderr: '' };
    const touch = (of: string, date: string, ...files: string[]) =>
      promisify(execFile)('touch', ['-d', date, ...files.map((file) => join(of, file))]);

    it('builds when the build is missing, runs nothing when that fails, and then builds once', async () => {
      const main = join(folder, 'src/main.ts');
      const text = await readFile(main, 'utf8');
      await writeFile(main, 'not TypeScript\n');
      await rm(join(folder, 'dist'), { recursive: true, force: true });
      const failed = await command();
      await writeFile(main, text);
      expect(failed).toMatchObject({ exitCode: 1, stdout: '' });
      expect(failed.stderr).toContain('src/main.ts');
      const open = ['-c', 'umask 000; exec "$0"', join(folder, 'plant-store')];
      expect(await finished(runProgram('/bin/sh', open))).toEqual({
        ...built,
        stdout: 'a result\n',
      });
      expect(await command()).toEqual({ ...notBuilt, stdout: 'a result\n' });
      // Another user who could write them could replace what the owner runs.
      for (const path of ['dist', 'dist/cli.js', 'dist/database/embedded', 'dist/.complete']) {
        expect((await stat(join(folder, path))).mode & 0o022).toBe(0);
      }
    });

    it('npm run start:dev leaves that build alone, rebuilds after a change, and starts the service when the one before it has ended', async () => {
      const source = (version: number) =>
        // A service needs a moment to release the database: here, until there is a file.
        `import { existsSync } from 'node:fs';
         process.on('SIGTERM', () => {
           console.log('stopping ${version}');
           setInterval(() => existsSync('released') && process.exit(console.log('ended ${version}')), 10);
         });
         setInterval(() => undefined, 1000);
         console.log('started ${version}');\n`;
      const main = join(folder, 'src/main.ts');
      const text = await readFile(main, 'utf8');
      const build = await filesIn(join(folder, 'dist'));
      const sources = Object.keys(await filesIn(join(folder, 'src'))).sort();
      await writeFile(main, source(1));
      const dev = runProgram('npm', ['run', '-s', 'start:dev'], {}, folder);
      try {
        await dev.waitFor(/started 1/);
        await writeFile(main, source(2));
        await dev.waitFor(/stopping 1/);
        // A second service that did not wait would have started by the time that another program has.
        await runProgram(process.execPath, ['--eval', '']).exit();
        await writeFile(join(folder, 'released'), '');
        await dev.waitFor(/started 2/);
      } finally {
        dev.process.kill('SIGTERM');
        await dev.exit();
        await writeFile(main, text);
      }
      expect(dev.stdout.match(/(started|ended) \d/g)).toEqual([
        'started 1',
        'ended 1',
        'started 2',
        'ended 2',
      ]);
      expect(await filesIn(join(folder, 'dist'))).toEqual(build);
      // A new file would be newer than that build.
      expect(Object.keys(await filesIn(join(folder, 'src'))).sort()).toEqual(sources);
    });

    describe('whose build takes no time, because the subject is when it runs', () => {
      let quick: string;
      const inputs = [
        ...['src', 'src/cli.ts', 'src/main.ts', 'src/database', 'src/database/embedded'],
        ...['package.json', PREPARATION],
      ];

      beforeEach(async () => {
        quick = await copyProject();
        await mkdir(join(quick, dirname(PREPARATION)), { recursive: true });
        await mkdir(join(quick, 'dist'));
        for (const file of ['src/cli.ts', 'src/main.ts', PREPARATION, 'dist/.complete']) {
          await writeFile(join(quick, file), '');
        }
        await writeFile(join(quick, 'dist/cli.js'), "console.log('a result');\n");
        await writeFile(join(quick, 'dist/main.js'), "console.log('the log');\n");
        const file = join(quick, 'package.json');
        const manifest = JSON.parse(await readFile(file, 'utf8')) as {
          scripts: Record<string, string>;
        };
        manifest.scripts['build'] = 'touch dist/.complete';
        await writeFile(file, JSON.stringify(manifest));
        await touch(quick, '2020-01-01', ...inputs);
      });
      afterEach(() => rm(quick, { recursive: true }));

      it('builds when the last build was interrupted', async () => {
        expect(await command(quick)).toEqual({ ...notBuilt, stdout: 'a result\n' });
        await rm(join(quick, 'dist/.complete'));
        expect(await command(quick)).toMatchObject(built);
        expect(await command(quick)).toMatchObject(notBuilt);
      });

      it('builds when packages were installed after the last build', async () => {
        await touch(quick, '2020-01-02', 'dist/.complete');
        expect(await command(quick)).toMatchObject(built);
        expect(await command(quick)).toMatchObject(notBuilt);
      });

      it.each(['src/cli.ts', 'package.json'])(
        'builds when %s has changed since the last build',
        async (file) => {
          await touch(quick, '2100-01-01', file);
          expect(await command(quick)).toMatchObject(built);
        },
      );

      it('runs the build when the packages were replaced by those for production, and says what to do when it is too old', async () => {
        await rm(join(quick, 'node_modules'));
        await mkdir(join(quick, 'node_modules'));
        await writeFile(join(quick, 'node_modules/.package-lock.json'), '{}');
        const path = `${dirname(process.execPath)}:${process.env['PATH']}`;
        const call = () => finished(runProgram(join(quick, 'plant-store'), [], { PATH: path }));
        expect(await call()).toEqual({ ...notBuilt, stdout: 'a result\n' });
        await touch(quick, '2010-01-01', 'dist/.complete');
        expect(await call()).toEqual({
          exitCode: 1,
          stdout: '',
          stderr: `The build in ${quick}/dist is missing or older than src or node_modules. Run: npm ci && npm run build\n`,
        });
      });

      it('npm start builds in the same cases, and reports that on standard error, not in the log', async () => {
        await touch(quick, '2010-01-01', 'dist/.complete');
        expect(await start(quick)).toEqual({ ...built, stdout: 'the log\n' });
        expect(await start(quick)).toEqual({ ...notBuilt, stdout: 'the log\n' });
        expect(await command(quick)).toMatchObject(notBuilt);
      });
    });
  });
});

/** Each file of a folder, with the time of its last change. */
async function filesIn(folder: string): Promise<Record<string, number>> {
  const files = await readdir(folder, { recursive: true });
  const times = files.map(
    async (file) => [file, (await stat(join(folder, file))).mtimeMs] as const,
  );
  return Object.fromEntries(await Promise.all(times));
}

async function finished(command: Command) {
  const exitCode = await command.exit();
  return { exitCode, stdout: command.stdout, stderr: command.stderr };
}
