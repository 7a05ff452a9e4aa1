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
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { urlOf } from '../setup/service/built-service.js';
import { untilIdleAt } from '../setup/service/clean-state.js';
import { NODE, ROOT, runBefore, runProgram, type Command } from '../setup/process/command.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { PATIENT } from '../setup/database/patient.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { METRICS_SETTING } from '../setup/service/metrics.js';
import { childrenOf, isRunning, sendSignal } from '../setup/process/processes.js';

const resources = useResources();

const NAME = `Anna's  "green\\house" $HOME * \`id\``;

/** A copy of the program without its sources, in a folder with spaces and a quote in its name. */
async function copyProject(...names: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "plant store's "));
  for (const name of ['plant-store', 'package.json', '.npmrc', ...names]) {
    await cp(join(ROOT, name), join(folder, name), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** A copy that is removed after the test. */
async function copyForTest(...names: string[]): Promise<string> {
  const folder = await copyProject(...names);
  resources.defer(() => rm(folder, { recursive: true }));
  return folder;
}

async function finished(command: Command) {
  const exitCode = await command.exit();
  return { exitCode, stdout: command.stdout, stderr: command.stderr };
}

describe('./plant-store, as in the container', () => {
  let database: TestDatabase;
  let project: string;

  beforeAll(async () => {
    database = await openTestDatabase();
    project = await copyProject('dist');
    await writeFile(join(project, '.env'), `DATABASE_URL=${database.url}\n`);
  });
  afterAll(async () => {
    await rm(project, { recursive: true });
    await database.close();
  });

  it('runs the pinned Node from any folder, through a symbolic link: it takes files from that folder and settings from its own, and passes arguments and the exit code on', async () => {
    const folder = await temporaryFolder(resources);
    const link = join(folder, 'link');
    await symlink(join(project, 'plant-store'), link);
    // Comes first on the path.
    await writeFile(join(folder, 'node'), '#!/bin/sh\necho wrong\n', { mode: 0o755 });
    await writeFile(join(folder, NAME), 'id,name\n1,a\nx,b\n');
    const env = { PATH: `${folder}:${process.env['PATH']}` };
    const load = await finished(runProgram(link, ['plants', 'load', NAME], env, folder));
    expect(load).toEqual({
      exitCode: 1,
      stdout: expect.stringMatching(/^line,error,message\n3,40005,/),
      stderr: expect.stringContaining(`Loading ${await realpath(folder)}/${NAME} into `),
    });
    expect(await database.query('SELECT name FROM plants')).toEqual([{ name: 'a' }]);
  });

  it('is run by npm run token --, which passes arguments and the exit code on', async () => {
    const token = runProgram('npm', ['run', '-s', 'token', '--', NAME], {}, project);
    expect(await finished(token)).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringContaining(`unknown command '${NAME}'`),
    });
  });

  it('npm start runs the service in its own place, so that a signal to npm lets the service end as it should', async () => {
    // With traces, because they have the version of the service. The collector is away, which prevents no graceful stop.
    const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
    const settings = { PORT: '0', ...METRICS_SETTING, ...PATIENT, ...collector };
    const npm = runProgram('npm', ['start'], settings, project);
    let services: number[] = [];
    resources.defer(async () => {
      for (const pid of services) sendSignal(pid, 'SIGKILL');
      npm.process.kill('SIGKILL');
      await npm.exit();
    });
    const url = await urlOf(npm);
    services = await childrenOf(npm.process.pid!);
    // npm passes signals on to its child alone: if that were a shell, it would end, and leave the service behind.
    expect((await Promise.all(services.map(childrenOf))).flat()).toEqual([]);
    await untilIdleAt(url);
    // Not the event `close`, which a service that is left behind would delay.
    const exited = once(npm.process, 'exit');
    npm.process.kill('SIGTERM');
    await exited;
    expect(services.filter(isRunning)).toEqual([]);
    expect(npm.stdout).toMatch(/stops: it received SIGTERM\.[^]*The Plant Store has stopped\./);
  });

  it('ends at once on a Node that is too old, and says what to do', async () => {
    const bare = await copyForTest('dist');
    // A module that is imported before the version is checked would not find its packages.
    await rm(join(bare, 'node_modules'));
    const [node, ...flags] = NODE;
    const versions = "{ value: { ...process.versions, node: '26.0.0' } }";
    const env = runBefore(`Object.defineProperty(process, 'versions', ${versions})`);
    for (const script of ['dist/main.js', 'dist/cli.js']) {
      const args = [...flags, join(bare, script)];
      expect(await finished(runProgram(node, args, env, tmpdir()))).toEqual({
        exitCode: 1,
        stdout: '',
        stderr:
          'The Plant Store needs Node 24.16 or 26.1, or newer, and this is Node 26.0.0: use ./plant-store or npm start, which run the ' +
          'Node that "npm ci" installs, or install a newer one.\n',
      });
    }
  });

  it('says when the dependencies are missing, and runs on the Node that it finds', async () => {
    const bare = await copyForTest('dist');
    const modules = join(bare, 'node_modules');
    await rm(modules);
    let path = `${dirname(process.execPath)}:${process.env['PATH']}`;
    const call = (...args: string[]) =>
      finished(runProgram(join(bare, 'plant-store'), args, { PATH: path }));
    const missing = await call('--help');
    expect(missing).toMatchObject({ exitCode: 1, stdout: '' });
    expect(missing.stderr).toContain('Run: npm ci');

    // That of the machine. The only package is the one that parses the command line: a command that needs no database must
    // load no other package.
    await mkdir(modules);
    await symlink(join(ROOT, 'node_modules/commander'), join(modules, 'commander'));
    const help = await call('--help');
    expect(help).toMatchObject({ exitCode: 0, stderr: '' });
    expect(help.stdout).toMatch(/^Usage: \.\/plant-store [^]*^ {2}start +start the service/m);

    // The pinned one that npm 10 has installed without a link: where no link can be made, and where one can.
    const writeNode = async (folder: string, text: string) => {
      await mkdir(join(bare, folder), { recursive: true });
      await writeFile(join(bare, folder, 'node'), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    };
    await writeNode('of the machine', 'echo wrong');
    await writeNode('node_modules/node-for-another-system/bin', 'exit 126');
    await writeNode('node_modules/node-for-this-system/bin', `exec '${process.execPath}' "$@"`);
    path = `${join(bare, 'of the machine')}:${process.env['PATH']}`;
    const usage = {
      exitCode: 2,
      stdout: '',
      stderr: expect.stringContaining('Use a number of up to four digits and a unit'),
    };
    expect(await call('token', 'create', 'x', '--expires', 'soon')).toEqual(usage);
    await mkdir(join(modules, '.bin'));
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect(await call('--version')).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: '' });
    expect(await readlink(join(modules, '.bin/node'))).toBe('../node-for-this-system/bin/node');
  });
});

/** A copy of the project with the sources of two small programs. */
async function copyWithSources(...names: string[]): Promise<string> {
  const folder = await copyForTest(...names);
  await mkdir(join(folder, 'src'), { recursive: true });
  await writeFile(join(folder, 'src/cli.ts'), '');
  await writeFile(join(folder, 'src/main.ts'), '');
  return folder;
}

describe('the build', () => {
  const BUILT = { exitCode: 0, stdout: 'a result\n', stderr: 'Building the Plant Store …\n' };
  const NOT_BUILT = { ...BUILT, stderr: '' };

  /** A copy with a build of two small programs that is complete. To build it again compiles nothing: the subject is when. */
  async function copyBuilt() {
    const folder = await copyWithSources();
    const embedded = join(folder, 'dist/database/embedded');
    await mkdir(embedded, { recursive: true });
    await writeFile(join(embedded, 'prepare-cluster.sh'), '');
    await writeFile(join(folder, 'dist/cli.js'), "console.log('a result');\n");
    await writeFile(join(folder, 'dist/main.js'), "console.log('the log');\n");
    await writeFile(join(folder, 'dist/.complete'), '');
    const touch = (date: string, ...files: string[]) =>
      promisify(execFile)('touch', ['-d', date, ...files.map((file) => join(folder, file))]);
    await touch('2020-01-01', 'src', 'src/cli.ts', 'src/main.ts', 'package.json');
    const command = (env = {}) => finished(runProgram(join(folder, 'plant-store'), [], env));
    return { folder, touch, command };
  }

  it('is made by npm start if it was interrupted, which is reported on standard error, not in the log; only its owner can write it', async () => {
    const { folder } = await copyBuilt();
    const manifest = await readFile(join(folder, 'package.json'), 'utf8');
    const build = 'mv dist old && cp -R old dist';
    await writeFile(join(folder, 'package.json'), manifest.replace('nest build', build));
    await rm(join(folder, 'dist/.complete'));
    await promisify(execFile)('chmod', ['-R', 'a+w', join(folder, 'dist')]);
    const start = runProgram('sh', ['-c', 'umask 000; exec npm start -s'], {}, folder);
    expect(await finished(start)).toEqual({ ...BUILT, stdout: 'the log\n' });
    // Another user who could write them could replace what the owner runs.
    for (const path of ['dist', 'dist/cli.js', 'dist/database/embedded', 'dist/.complete']) {
      expect((await stat(join(folder, path))).mode & 0o022).toBe(0);
    }
  });

  it('is made if it is missing, or older than package.json, the packages or a source; if that fails, nothing runs', async () => {
    const { folder, touch, command } = await copyBuilt();
    // In the place of npm, which takes longer.
    const programs = await temporaryFolder(resources);
    const env = { PATH: `${programs}:${process.env['PATH']}` };
    const replaceNpm = (text: string) =>
      writeFile(join(programs, 'npm'), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    await replaceNpm(
      '[ -d dist ] || mv old dist; [ "$*" = "run -s build" ] && touch dist/.complete',
    );
    expect(await command(env)).toEqual(NOT_BUILT);
    await rename(join(folder, 'dist'), join(folder, 'old'));
    expect(await command(env)).toEqual(BUILT);
    await touch('2100-01-01', 'package.json');
    expect(await command(env)).toEqual(BUILT);
    await touch('2020-01-01', 'package.json');
    await touch('2020-01-02', 'dist/.complete');
    expect(await command(env)).toEqual(BUILT);
    await replaceNpm('exit 1');
    await touch('2100-01-01', 'src/cli.ts');
    expect(await command(env)).toEqual({ ...BUILT, exitCode: 1, stdout: '' });
  });

  it('of packages for production runs; if it is too old, the message says what to do', async () => {
    const { folder, touch, command } = await copyBuilt();
    await rm(join(folder, 'node_modules'));
    await mkdir(join(folder, 'node_modules'));
    await writeFile(join(folder, 'node_modules/.package-lock.json'), '{}');
    const env = { PATH: `${dirname(process.execPath)}:${process.env['PATH']}` };
    expect(await command(env)).toEqual(NOT_BUILT);
    await touch('2010-01-01', 'dist/.complete');
    expect(await command(env)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `The build in ${folder}/dist is missing or older than src or node_modules. Run: npm ci && npm run build\n`,
    });
  });

  it('is left alone by npm run start:dev, which rebuilds after a change, and starts the service when the one before it has ended', async () => {
    const source = (version: number) =>
      // A service needs a moment to release the database: here, until there is a file.
      `import { existsSync } from 'node:fs';
       process.on('SIGTERM', () => {
         console.log('stopping ${version}');
         setInterval(() => existsSync('released') && process.exit(console.log('ended ${version}')), 10);
       });
       setInterval(() => undefined, 1000);
       console.log('started ${version}');\n`;
    const folder = await copyWithSources(
      'tsconfig.json',
      'src/tsconfig.build.json',
      'src/tsconfig.dev.json',
      'nest-cli.json',
    );
    const main = join(folder, 'src/main.ts');
    await mkdir(join(folder, 'dist'));
    await writeFile(join(folder, 'dist/main.js'), '');
    await writeFile(main, source(1));
    // A new file in `src` would be newer than the build.
    const list = async () => [
      await readdir(join(folder, 'dist')),
      (await stat(join(folder, 'dist/main.js'))).mtimeMs,
      (await readdir(join(folder, 'src'), { recursive: true })).sort(),
    ];
    const before = await list();
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
    }
    expect(dev.stdout.match(/(started|ended) \d/g)).toEqual([
      'started 1',
      'ended 1',
      'started 2',
      'ended 2',
    ]);
    expect(await list()).toEqual(before);
  });
});
