import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { CannotRunError, parseCount, runToExitCode } from '../setup/fault-program.js';
import { isKill, KINDS, LOSE_PLANT, longPlan, shortPlan, type Kind } from './plan.js';
import { formatReport } from './report.js';
import { openEmbeddedRig, openServerRig } from './rig.js';
import { run } from './run.js';

interface Options {
  kills?: number;
  kinds: Kind[];
  embedded?: true;
  seed: number;
  setting: Record<string, string>;
  out: string;
}

const program = new Command('npm run test:faults --')
  .description(
    'Kills, freezes and starves the service and its Postgres under load, and compares the rows with the responses. Exit codes: 0 clean; 1 not clean, failed or interrupted; 2 packages are missing.',
  )
  .option(
    '--kills <number>',
    'how many, with other faults among them (default: each fault once)',
    parseCount,
  )
  .addOption(
    new Option('--kinds <names...>', 'which')
      .choices([...KINDS, LOSE_PLANT])
      .default(KINDS, 'all but lose-plant'),
  )
  .addOption(new Option('--embedded', 'the embedded Postgres of the service').conflicts('setting'))
  .addOption(
    new Option('--seed <number>', 'repeats the choices of another run')
      .argParser(parseCount)
      .default(randomInt(1, 2 ** 31), 'at random'),
  )
  .option('--setting <name=value>', 'of Postgres', addSetting, {})
  .option('--out <file>', 'the report as JSON', 'test/faults/results/report.json');

function addSetting(text: string, settings: Record<string, string>): Record<string, string> {
  const [, name, value] = /^(\w+)=(\S+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    throw new InvalidArgumentError('Give a name and a value, such as synchronous_commit=off.');
  }
  return { ...settings, [name]: value };
}

/** @throws CannotRunError that names what to install */
async function findFaketime(): Promise<string> {
  if (process.platform !== 'linux') throw new CannotRunError('Did not run: this needs Linux.');
  // Debian's folder has the name of the processor.
  const paths = (await readdir('/usr/lib')).map((name) =>
    join('/usr/lib', name, 'faketime/libfaketimeMT.so.1'),
  );
  const path = paths.find((path) => existsSync(path));
  if (path === undefined) {
    throw new CannotRunError(
      'Did not run: install the missing package first: apt-get install libfaketime',
    );
  }
  return path;
}

const { kills, kinds, embedded = false, seed, setting, out } = program.parse().opts<Options>();
if (kills !== undefined && !kinds.some(isKill)) {
  program.error('error: --kills needs a kill among --kinds');
}
const exitCode = await runToExitCode('faults', out, async (surroundings) => {
  const faketime = await findFaketime();
  surroundings.tell(`seed ${seed}`);
  const plan = (allowed: readonly Kind[]) => {
    const chosen = allowed.filter((kind) => kinds.includes(kind));
    return kills === undefined ? shortPlan(chosen, seed) : longPlan(chosen, kills, seed);
  };
  const rig = embedded ? openEmbeddedRig : openServerRig(setting);
  const report = await run({ plan, seed, settings: setting, faketime, openRig: rig }, surroundings);
  const file = resolve(out);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(report, null, 2)}\n`);
  process.stdout.write(`\n${formatReport(report)}\n${relative(process.cwd(), file)}\n`);
  return report.verdict === 'clean';
});
process.exit(exitCode);
