import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { ROOT } from '../test/setup/process/command.js';
import { CONTENDERS, openServer, startContender, type Contender } from './contenders.js';
import { describeEnvironment, drawChart, formatTable, summarize } from './report.js';
import { runRound, type Round } from './round.js';

const FULL = { rounds: 7, seconds: 7, connections: 64 };
const QUICK = { ...FULL, rounds: 3, seconds: 3 };

const program = new Command('npm run bench --')
  .description(
    'Measures the Plant Store and its peers in alternating rounds on one Postgres: the server in DATABASE_URL, or one that the benchmark starts.',
  )
  .option('--quick', `${QUICK.rounds} rounds of ${QUICK.seconds} seconds: a minute, not five`)
  .option('--rounds <number>', `rounds of each contender (default: ${FULL.rounds})`, parseCount)
  .option('--seconds <number>', `length of a round (default: ${FULL.seconds})`, parseCount)
  .option('--connections <number>', `of clients (default: ${FULL.connections})`, parseCount);

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('Give a whole number above 0.');
  return Number(text);
}

const { quick, ...given } = program.parse().opts<Partial<typeof FULL> & { quick?: true }>();
const plan = { ...(quick === true ? QUICK : FULL), ...given };
const startedAt = new Date().toISOString();
const interruption = new AbortController();
// The terminal signals this process and npm, which passes the signal on: a second signal is ignored.
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(name, () => interruption.abort());
}
try {
  const { rounds, environment } = await measure(interruption.signal);
  await report(rounds, environment);
} catch (error) {
  // It names what could not be stopped or dropped.
  if (error instanceof SuppressedError) console.error(error);
  else if (interruption.signal.aborted) tell('Interrupted: nothing was saved.');
  else tell((error as Error).message);
  process.exitCode = 1;
}

/** @throws the first failure, or the reason of `signal`; by then, all that was started has been stopped */
async function measure(signal: AbortSignal) {
  await using started = new AsyncDisposableStack();
  const server = await openServer(started);
  const contenders: Contender[] = [];
  for (const kind of CONTENDERS) {
    tell(`Starting ${kind.name}`);
    contenders.push(await startContender(kind, server, started, signal));
  }
  const rounds: Round[] = [];
  for (let number = 0; number <= plan.rounds; number++) {
    for (const contender of contenders) {
      const round = await runRound(contender, plan, signal);
      // V8 compiles the code of a request in the first round, which does not count.
      if (number > 0) rounds.push(round);
      const label = number === 0 ? 'Warm-up' : `Round ${number} of ${plan.rounds}`;
      tell(`${label}, ${round.name}: ${Math.round(round.perSecond).toLocaleString('en')} a second`);
    }
  }
  return { rounds, environment: await describeEnvironment(server) };
}

async function report(rounds: readonly Round[], environment: readonly string[]): Promise<void> {
  const summaries = summarize(rounds);
  const head = `${plan.connections} connections, medians of ${plan.rounds} rounds`;
  process.stdout.write(`\n${formatTable(summaries, head)}\n\n${environment.join('\n')}\n`);

  const folder = join(ROOT, 'bench/results');
  const path = join(folder, startedAt.replace(/\..*$/, '').replaceAll(':', '-'));
  const results = { startedAt, plan, environment, summaries, rounds };
  await mkdir(folder, { recursive: true });
  await writeFile(`${path}.json`, `${JSON.stringify(results, null, 2)}\n`);
  await writeFile(`${path}.svg`, drawChart(summaries, [head, ...environment]));
  tell(`\n${path}.json\n${path}.svg`);
}

function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}
