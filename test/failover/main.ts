import { randomInt } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { generator } from '../setup/random.js';
import { drawChart } from './chart.js';
import { FAULTS, SHORT_FORM, type Fault } from './faults.js';
import { findPrograms, CannotRunError } from './programs.js';
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

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new InvalidArgumentError('Give a whole number above 0.');
  return Number(text);
}

/** The pauses of the short form are short, because CI waits for it. */
function planOf({ events, kinds = [...FAULTS], seed, serverLoginRetry }: Options): Plan {
  if (events === undefined) {
    return { faults: SHORT_FORM, seed, longestPauseMs: 3000, serverLoginRetry };
  }
  const random = generator(seed);
  const faults = Array.from({ length: events }, () => kinds[random(kinds.length)]!);
  return { faults, seed, longestPauseMs: 12_000, serverLoginRetry };
}

/** Writes the report and its picture; the logs, too, when the verdict is not clean. */
async function save(report: Report, out: string, folder: string): Promise<string[]> {
  await mkdir(dirname(out), { recursive: true });
  const base = out.replace(/\.json$/, '');
  await writeFile(out, `${JSON.stringify(report)}\n`);
  await writeFile(`${base}.svg`, drawChart(report));
  if (report.verdict === 'clean') return [out, `${base}.svg`];
  await saveLogs(folder, `${base}-logs`);
  return [out, `${base}.svg`, `${base}-logs`];
}

async function saveLogs(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of await readdir(from)) {
    if (name.endsWith('.log')) await cp(join(from, name), join(to, name));
  }
}

async function main(): Promise<number> {
  const options = program.parse().opts<Options>();
  if (options.kinds !== undefined && options.events === undefined) {
    program.error('error: --kinds needs --events');
  }
  const interruption = new AbortController();
  // The terminal signals this process and npm, which passes the signal on: a second signal is ignored.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => interruption.abort());
  }
  const { signal } = interruption;
  const tell = (text: string) => void process.stderr.write(`${text}\n`);
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-failover-'));
  try {
    const programs = await findPrograms();
    tell(`seed ${options.seed}`);
    const report = await run(planOf(options), { programs, folder, signal, tell });
    process.stdout.write(`\n${formatReport(report)}\n`);
    const files = await save(report, resolve(options.out), folder);
    process.stdout.write(`${files.map((file) => relative(process.cwd(), file)).join('\n')}\n`);
    return report.verdict === 'clean' ? 0 : 1;
  } catch (error) {
    if (error instanceof CannotRunError) {
      tell(error.message);
      return 2;
    }
    if (signal.aborted) {
      tell('Interrupted: nothing was saved, and everything that was started has been stopped.');
      return 1;
    }
    const logs = `${resolve(options.out).replace(/\.json$/, '')}-logs`;
    await saveLogs(folder, logs);
    tell(`${(error as Error).message}\nThe logs are in ${relative(process.cwd(), logs)}.`);
    return 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

process.exit(await main());
