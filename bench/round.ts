import { randomBytes } from 'node:crypto';
import { addAbortListener } from 'node:events';
import { readFile, truncate } from 'node:fs/promises';
import { createHistogram } from 'node:perf_hooks';
import autocannon from 'autocannon';
import { queryOnce } from '../test/setup/database/query-once.js';
import { endOf, type Contender } from './contenders.js';

interface Load {
  readonly seconds: number;
  readonly connections: number;
}

/** One contender under load for some seconds. */
export interface Round {
  readonly name: string;
  /** Plants with a 2xx response. */
  readonly acknowledged: number;
  /** Rows in the table afterwards; undefined for a contender that stores nothing. */
  readonly stored: number | undefined;
  readonly perSecond: number;
  /** Milliseconds from a request to the end of its response. */
  readonly p50: number;
  readonly p99: number;
  /** Microseconds that the contender alone used for a request; NaN where there is no /proc. */
  readonly processorTime: number;
}

/** @throws Error when a request failed, or when the rows are not those that were acknowledged */
export async function runRound(
  contender: Contender,
  load: Load,
  signal: AbortSignal,
): Promise<Round> {
  const { name, database, pid, logFile } = contender;
  signal.throwIfAborted();
  if (database !== undefined) await queryOnce(database, 'TRUNCATE plants');
  await truncate(logFile);
  const before = await processorTimeOf(pid);
  const { acknowledged, failed, ...speed } = await sendPlants(contender, load, signal);
  const processorTime = ((await processorTimeOf(pid)) - before) / acknowledged;
  signal.throwIfAborted();
  if (failed > 0 || acknowledged === 0) {
    const counts = `${failed} requests failed, and ${acknowledged} succeeded`;
    throw new Error(`${name}: ${counts}.\n${await endOf(logFile)}`);
  }
  const stored = database === undefined ? undefined : await countPlants(database);
  // A request that was in flight on each connection when the load ended may have stored its plant.
  const most = acknowledged + load.connections;
  if (stored !== undefined && (stored < acknowledged || stored > most)) {
    throw new Error(`${name} acknowledged ${acknowledged} plants, and stored ${stored}.`);
  }
  return { name, acknowledged, stored, ...speed, processorTime };
}

/** Sends plants with random 64-bit ids: each connection sends the next one when it has a response. */
async function sendPlants(
  { url, headers }: Contender,
  { seconds, connections }: Load,
  signal: AbortSignal,
) {
  const newPlant = () =>
    `{"id":${randomBytes(8).readBigInt64BE()},"name":"Equisetum fluviatile","tag":"Equisetum"}`;
  const requests = [
    { setupRequest: (request: autocannon.Request) => ({ ...request, body: newPlant() }) },
  ];
  const { promise, resolve, reject } = Promise.withResolvers<autocannon.Result>();
  const generator = autocannon(
    { url, headers, method: 'POST', requests, connections, duration: seconds },
    (error: Error | null, result) => (error === null ? resolve(result) : reject(error)),
  );
  // That of autocannon counts whole milliseconds.
  const microseconds = createHistogram();
  generator.on('response', (_client, _status, _bytes, milliseconds) => {
    microseconds.record(Math.max(1, Math.round(milliseconds * 1000)));
  });
  using _stopEarly = addAbortListener(signal, () => generator.stop());
  const result = await promise;
  return {
    acknowledged: result['2xx'],
    failed: result.non2xx + result.errors,
    perSecond: result['2xx'] / result.duration,
    p50: microseconds.percentile(50) / 1000,
    p99: microseconds.percentile(99) / 1000,
  };
}

async function countPlants(database: string): Promise<number> {
  const [row] = await queryOnce<{ count: string }>(database, 'SELECT count(*) FROM plants');
  return Number(row!.count);
}

/** @returns microseconds that all threads of a process have used, in its own code and in the kernel */
async function processorTimeOf(pid: number): Promise<number> {
  if (process.platform !== 'linux') return NaN;
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // Field 2, the name of the program in parentheses, may contain spaces. The times are fields 14 and 15, in hundredths of a second.
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(14 - 3);
  return (Number(user) + Number(system)) * 10_000;
}
