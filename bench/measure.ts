import { whyNoCitus } from '../test/setup/database/citus-cluster.js';
import { startContender, type Contender, type MeasuringContext } from './contenders.js';
import type { LoadResult } from './load.js';
import type { Progress } from './progress.js';
import { LABELS, rateOf, summarize, type ContenderName, type Part, type Round } from './results.js';
import { openShards } from './shards.js';

/** Rates at which latency is measured, as parts of the highest throughput. */
const FRACTIONS = [0.1, 0.25, 0.5, 0.75, 0.9];

/** Time of a round beyond its load: emptying the table, connecting, counting. */
const ROUND_OVERHEAD_SECONDS = 0.7;
const START_SECONDS = 1.5;
const CLUSTER_START_SECONDS = 10;
const SHARDS_WARM_UP = 4;
const MEMORY_ROUND_SECONDS = 2;
const FILL_CHUNK = 250_000;

export interface Plan {
  readonly parts: readonly Part[];
  readonly connections: number;
  /** Length of a round. */
  readonly seconds: number;
  readonly rounds: number;
  readonly warmUpSeconds: number;
  /** Rows of the full table. */
  readonly rows: number;
  /** Requests until memory is compared. */
  readonly requests: number;
}

const SINGLE: readonly ContenderName[] = ['ours', 'fastify', 'express', 'nest', 'echo'];
const LONE: readonly ContenderName[] = ['ours', 'unbatched', 'fastify'];
const AT_RATES: readonly ContenderName[] = ['ours', 'fastify'];
const PROCESSES: readonly ContenderName[] = ['oursInFour', 'postgres'];
const SHARDS: readonly ContenderName[] = ['oursOnShards', 'citus'];
const TABLE: readonly ContenderName[] = ['ours', 'oursOnFull'];

/** @returns about how long the parts of a plan take */
export function plannedSeconds(plan: Plan): number {
  const round = plan.seconds + ROUND_OVERHEAD_SECONDS;
  const alternating = (contenders: number, rates = 1) =>
    contenders * (START_SECONDS + plan.warmUpSeconds + rates * plan.rounds * round);
  const seconds: Record<Part, number> = {
    speed: alternating(SINGLE.length),
    lone: alternating(LONE.length),
    rates: alternating(AT_RATES.length, FRACTIONS.length),
    processes: alternating(PROCESSES.length),
    table: alternating(TABLE.length) + fillSeconds(plan.rows),
    memory: START_SECONDS + memorySeconds(plan.requests),
    shards:
      CLUSTER_START_SECONDS +
      alternating(SHARDS.length) +
      SHARDS.length * (SHARDS_WARM_UP - 1) * plan.warmUpSeconds,
  };
  return plan.parts.reduce((sum, part) => sum + seconds[part], 0);
}

/** Measures the parts of a plan, one after the other. `problems` lists every failure that makes results doubtful. */
export class Measurement {
  readonly rounds: Round[] = [];
  readonly problems: string[] = [];

  constructor(
    private readonly plan: Plan,
    private readonly context: MeasuringContext,
    private readonly progress: Progress,
  ) {}

  /** @throws the reason of the signal that ended it */
  async run(): Promise<void> {
    const parts: Record<Part, () => Promise<void>> = {
      speed: () => this.alternate('speed', SINGLE),
      lone: () => this.alternate('lone', LONE, 1),
      rates: () => this.measureRates(),
      processes: () => this.alternate('processes', PROCESSES),
      table: () => this.measureTable(),
      memory: () => this.measureMemory(),
      shards: () => this.measureShards(),
    };
    for (const part of this.plan.parts) {
      try {
        await parts[part]();
      } catch (error) {
        this.context.signal.throwIfAborted();
        // The results of the other parts are still valid.
        this.report(`The part "${part}" ended early: ${(error as Error).message}`);
      }
    }
  }

  /** Starts contenders, warms them up, and measures them in turns. */
  private async alternate(
    part: Part,
    names: readonly ContenderName[],
    connections = this.plan.connections,
  ): Promise<void> {
    await this.withContenders(names, async (contenders) => {
      await this.warmUp(contenders, connections);
      await this.takeTurns(part, contenders, connections);
    });
  }

  private async measureRates(): Promise<void> {
    const highest = summarize(this.rounds).find(
      ({ part, contender }) => part === 'speed' && contender === 'ours',
    );
    if (highest === undefined) throw new Error('The part "rates" needs the part "speed".');
    const { connections } = this.plan;
    await this.withContenders(AT_RATES, async (contenders) => {
      await this.warmUp(contenders, connections);
      for (const fraction of FRACTIONS) {
        const rate = rateOf(highest.throughput, fraction);
        await this.takeTurns('rates', contenders, connections, rate);
      }
    });
  }

  private async measureTable(): Promise<void> {
    const { connections, rows } = this.plan;
    await this.withContenders(TABLE, async (contenders) => {
      const full = contenders.find(({ name }) => name === 'oursOnFull')!.database!;
      for (let from = 0; from < rows; from += FILL_CHUNK) {
        const to = Math.min(rows, from + FILL_CHUNK);
        const label = `filling the table, ${to.toLocaleString('en')} of ${rows.toLocaleString('en')} rows`;
        await this.step(label, fillSeconds(to - from), () => full.fill(from, to));
      }
      await this.step('VACUUM ANALYZE and CHECKPOINT', 0, () => full.settle());
      await this.warmUp(contenders, connections);
      await this.takeTurns('table', contenders, connections);
    });
  }

  private async measureMemory(): Promise<void> {
    const { connections, requests } = this.plan;
    await this.withContenders(['ours'], async ([ours]) => {
      let sent = 0;
      // After the last request, another tenth is sent, so that memory at the end is a median, too.
      while (sent < requests * 1.1) {
        const label = `memory, ${sent.toLocaleString('en')} of ${requests.toLocaleString('en')} requests`;
        const seconds = Math.min(MEMORY_ROUND_SECONDS, this.plan.seconds);
        const round = await this.step(label, seconds, () =>
          this.measureRound('memory', ours!, connections, seconds),
        );
        if (round.acknowledged === 0) return;
        sent += round.acknowledged;
      }
    });
  }

  private async measureShards(): Promise<void> {
    const missing = await whyNoCitus();
    if (missing !== undefined) {
      this.progress.note(`Not measured: the part "shards". ${missing}.`);
      return;
    }
    const { context, progress } = this;
    // V8 compiles the code of a request after some ten thousand requests, which takes longer here.
    const plan = { ...this.plan, warmUpSeconds: SHARDS_WARM_UP * this.plan.warmUpSeconds };
    const server = await this.step('starting Citus', CLUSTER_START_SECONDS, openShards);
    try {
      const onShards = new Measurement(plan, { ...context, server }, progress);
      await onShards.alternate('shards', SHARDS);
      this.rounds.push(...onShards.rounds);
      this.problems.push(...onShards.problems);
    } finally {
      await server.close();
    }
  }

  private async takeTurns(
    part: Part,
    contenders: readonly Contender[],
    connections: number,
    rate?: number,
  ): Promise<void> {
    const { rounds, seconds } = this.plan;
    for (let round = 1; round <= rounds; round++) {
      for (const contender of contenders) {
        const label = `${LABELS[contender.name]}, ${describe(connections, rate)}, round ${round} of ${rounds}`;
        await this.step(label, seconds + ROUND_OVERHEAD_SECONDS, () =>
          this.measureRound(part, contender, connections, seconds, rate),
        );
      }
    }
  }

  private async measureRound(
    part: Part,
    contender: Contender,
    connections: number,
    seconds: number,
    rate?: number,
  ): Promise<Round> {
    const { name, database, process: server } = contender;
    if (name !== 'oursOnFull') await database?.empty();
    await server?.clearLog();
    const rowsBefore = (await database?.count()) ?? 0;
    const usageBefore = server?.usage();
    const result = await contender.run({
      connections,
      seconds,
      ...(rate === undefined ? {} : { rate }),
      signal: this.context.signal,
    });
    const usage = server?.usage();
    const { acknowledged, latency } = result;
    const round: Round = {
      part,
      contender: name,
      connections,
      ...(rate === undefined ? {} : { rate }),
      acknowledged,
      failures: result.failures,
      seconds: result.seconds,
      throughput: acknowledged / result.seconds,
      ...(latency === undefined ? {} : { latency }),
      ...(usage === undefined || usageBefore === undefined
        ? {}
        : {
            cpuMicrosecondsPerRequest:
              (usage.cpuMicroseconds - usageBefore.cpuMicroseconds) / acknowledged,
            residentBytes: usage.residentBytes,
          }),
    };
    this.rounds.push(round);
    this.reportFailures(contender, result, `at ${describe(connections, rate)}`);
    if (database !== undefined) {
      const stored = (await database.count()) - rowsBefore;
      if (stored < acknowledged) {
        this.report(`${LABELS[name]} acknowledged ${acknowledged} plants and stored ${stored}.`);
      }
    }
    return round;
  }

  private report(problem: string): void {
    this.problems.push(problem);
    this.progress.note(`Failed: ${problem}`);
  }

  private async warmUp(contenders: readonly Contender[], connections: number): Promise<void> {
    const { warmUpSeconds } = this.plan;
    const load = { connections, seconds: warmUpSeconds, signal: this.context.signal };
    for (const contender of contenders) {
      await this.step(`${LABELS[contender.name]}, warming up`, warmUpSeconds, async () => {
        this.reportFailures(contender, await contender.run(load), 'while warming up');
      });
    }
  }

  private reportFailures(
    { name }: Contender,
    { acknowledged, failures }: LoadResult,
    when: string,
  ): void {
    const kinds = Object.entries(failures).map(([kind, count]) => `${count} × ${kind}`);
    if (acknowledged === 0) kinds.push('no success at all');
    if (kinds.length > 0) {
      this.report(`${LABELS[name]} failed ${when}: ${kinds.join(', ')}.`);
    }
  }

  private async withContenders(
    names: readonly ContenderName[],
    work: (contenders: readonly Contender[]) => Promise<void>,
  ): Promise<void> {
    await using started = new AsyncDisposableStack();
    const contenders: Contender[] = [];
    for (const name of names) {
      const contender = await this.step(`starting ${LABELS[name]}`, START_SECONDS, () =>
        startContender(name, this.context),
      );
      started.defer(() => contender.close());
      contenders.push(contender);
    }
    await work(contenders);
  }

  private step<Result>(
    label: string,
    seconds: number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    this.context.signal.throwIfAborted();
    return this.progress.during(label, seconds, work);
  }
}

function describe(connections: number, rate: number | undefined): string {
  const clients = connections === 1 ? 'one connection' : `${connections} connections`;
  return rate === undefined ? clients : `${clients}, ${rate} requests/s`;
}

/** An estimate from an ordinary disk, for the progress display alone. */
function fillSeconds(rows: number): number {
  return rows / 150_000;
}

function memorySeconds(requests: number): number {
  return requests / 6000;
}
