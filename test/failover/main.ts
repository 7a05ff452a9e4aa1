import { randomInt } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import { Command, Option } from 'commander';
import { parseCount, runToExitCode } from '../setup/fault-program.js';
import { generator } from '../setup/model/random.js';
import { drawChart } from './chart.js';
import { FAULTS, SHORT_FORM, type Fault } from './faults.js';
import { findPrograms } from './programs.js';
import { formatReport, type Report } from './report.js';
import { run, type Plan } from './run.js';

interface Options {
  events?: number;
  kinds?: Fault[];
  seed: number;
  serverLoginRetry: number;
  out: string;
}

const program = new Command('npm run test:failover --')
  .description(
    'Disturbs the primaries of a Postgres cluster under load, and compares the rows with the responses. Exit codes: 0 clean; 1 not clean, failed or interrupted; 2 packages are missing.',
  )
  .option(
    '--events <number>',
    'how many, at random (default: two kills and a switchover)',
    parseCount,
  )
  .addOption(
    new Option('--kinds <names...>', 'which, with --events (default: all)').choices(FAULTS),
  )
  .addOption(
    new Option('--seed <number>', 'repeats the choices of another run')
      .argParser(parseCount)
      .default(randomInt(1, 2 ** 31), 'at random'),
  )
  .option('--server-login-retry <seconds>', "PgBouncer's setting", parseCount, 1)
  .option(
    '--out <file>',
    'the report as JSON; the picture is beside it',
    'test/failover/results/report.json',
  );

/** The pauses of the short form are short, because CI waits for it. */
function planOf({ events, kinds = [...FAULTS], seed, serverLoginRetry }: Options): Plan {
  if (events === undefined) {
    return { faults: SHORT_FORM, seed, longestPauseMs: 3000, serverLoginRetry };
  }
  const random = generator(seed);
  const faults = Array.from({ length: events }, () => kinds[random(kinds.length)]!);
  return { faults, seed, longestPauseMs: 12_000, serverLoginRetry };
}

/** Writes the report and its picture. */
async function save(report: Report, out: string): Promise<string[]> {
  await mkdir(dirname(out), { recursive: true });
  const picture = `${out.replace(/\.json$/, '')}.svg`;
  await writeFile(out, `${JSON.stringify(report)}\n`);
  await writeFile(picture, drawChart(report));
  return [out, picture];
}

const options = program.parse().opts<Options>();
if (options.kinds !== undefined && options.events === undefined) {
  program.error('error: --kinds needs --events');
}
const exitCode = await runToExitCode('failover', options.out, async (surroundings) => {
  const programs = await findPrograms();
  surroundings.tell(`seed ${options.seed}`);
  const report = await run(planOf(options), { programs, ...surroundings });
  process.stdout.write(`\n${formatReport(report)}\n`);
  const files = await save(report, resolve(options.out));
  process.stdout.write(`${files.map((file) => relative(process.cwd(), file)).join('\n')}\n`);
  return report.verdict === 'clean';
});
process.exit(exitCode);
