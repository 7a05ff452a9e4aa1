import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import autocannon from 'autocannon';
import { Pool } from 'undici';
import { ROOT } from '../test/setup/process/command.js';
import { versionOf } from './repository.js';
import { LatencyRecorder, type Latency } from './statistics.js';

const exec = promisify(execFile);

const WRK_SCRIPT = join(ROOT, 'bench/wrk.lua');

/** A response that takes longer counts as a failure. */
const RESPONSE_TIMEOUT_SECONDS = 10;

/** A service to which plants are sent. */
export interface Target {
  /** The address, without a path. */
  readonly url: string;
  /** A bearer token, for a service that needs one. */
  readonly token?: string;
}

export interface Load {
  readonly connections: number;
  /** Requests a second, sent evenly; undefined: each response is followed by the next request at once. */
  readonly rate?: number;
  readonly seconds: number;
  readonly signal: AbortSignal;
}

export interface LoadResult {
  /** Requests with a 2xx response. */
  readonly acknowledged: number;
  /** Counts of all other requests, by the kind of failure. */
  readonly failures: Readonly<Record<string, number>>;
  readonly seconds: number;
  /** undefined for pgbench, which reports only a mean. */
  readonly latency?: Latency;
}

/** Sends plants with random 64-bit ids. */
export interface LoadGenerator {
  readonly name: string;
  readonly version: string;
  run(target: Target, load: Load): Promise<LoadResult>;
}

/**
 * Prefers wrk, which leaves the contenders the most processor time; without it, uses autocannon.
 *
 * @throws Error when wrk was asked for and is not installed
 */
export async function findLoadGenerator(wanted?: 'wrk' | 'autocannon'): Promise<LoadGenerator> {
  if (wanted !== 'autocannon') {
    const version = await wrkVersion();
    if (version !== undefined) return { name: 'wrk', version, run: runWrk };
    if (wanted === 'wrk') {
      throw new Error('wrk is not installed. Install it, or leave out --generator.');
    }
  }
  return { name: 'autocannon', version: versionOf('autocannon'), run: runAutocannon };
}

async function wrkVersion(): Promise<string | undefined> {
  // wrk prints its version with its help text, and exits with an error.
  const text = await exec('wrk', ['-v']).catch((error: { stdout?: string }) => error);
  return /wrk (\S+)/.exec(text.stdout ?? '')?.[1];
}

interface WrkSummary {
  requests: number;
  microseconds: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
  connect: number;
  read: number;
  write: number;
  timeout: number;
  status: number;
}

async function runWrk(target: Target, load: Load): Promise<LoadResult> {
  const threads = Math.min(load.connections, Math.max(1, Math.floor(availableParallelism() / 2)));
  const args = [
    `--threads=${threads}`,
    `--connections=${load.connections}`,
    `--duration=${load.seconds}s`,
    `--timeout=${RESPONSE_TIMEOUT_SECONDS}s`,
    `--script=${WRK_SCRIPT}`,
    `${target.url}/plants`,
  ];
  const env: NodeJS.ProcessEnv = { PATH: process.env['PATH'] };
  if (target.token !== undefined) env['BENCH_TOKEN'] = target.token;
  if (load.rate !== undefined) env['BENCH_RATE_OF_THREAD'] = String(load.rate / threads);
  const { stdout } = await exec('wrk', args, { env, signal: load.signal });
  const line = stdout.split('\n').find((text) => text.startsWith('{'));
  if (line === undefined) throw new Error(`wrk printed no summary: ${stdout}`);
  const summary = JSON.parse(line) as WrkSummary;
  const { connect, read, write, timeout, status } = summary;
  return {
    acknowledged: summary.requests - status,
    failures: countedOnly({ 'status 4xx or 5xx': status, connect, read, write, timeout }),
    seconds: summary.microseconds / 1e6,
    latency: {
      p50: summary.p50 / 1000,
      p90: summary.p90 / 1000,
      p99: summary.p99 / 1000,
      max: summary.max / 1000,
    },
  };
}

async function runAutocannon(target: Target, load: Load): Promise<LoadResult> {
  if (load.rate !== undefined) return runAtRate(target, load.rate, load);
  // autocannon's own histogram counts whole milliseconds, which is too coarse for a lone request.
  const recorder = new LatencyRecorder();
  const options: autocannon.Options = {
    url: `${target.url}/plants`,
    connections: load.connections,
    duration: load.seconds,
    timeout: RESPONSE_TIMEOUT_SECONDS,
    method: 'POST',
    headers: headersOf(target),
    requests: [{ setupRequest: (request) => ({ ...request, body: newPlant() }) }],
  };
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const instance = autocannon(options, (error: Error | null, measured) => {
      load.signal.removeEventListener('abort', stop);
      if (error === null) resolve(measured);
      else reject(error);
    });
    const stop = () => instance.stop();
    load.signal.addEventListener('abort', stop);
    instance.on('response', (_client, _status, _bytes, milliseconds) => {
      recorder.record(milliseconds);
    });
  });
  load.signal.throwIfAborted();
  const { non2xx, errors, timeouts } = result;
  return {
    acknowledged: result['2xx'],
    failures: countedOnly({ 'status other than 2xx': non2xx, errors, timeouts }),
    seconds: result.duration,
    latency: recorder.summary(),
  };
}

/**
 * Replaces autocannon, which sends all requests of a second at its beginning, as fast as it can. This function
 * spreads them evenly; if no connection is free, a request waits, and its wait counts as latency.
 */
async function runAtRate(target: Target, rate: number, load: Load): Promise<LoadResult> {
  const pool = new Pool(target.url, {
    connections: load.connections,
    headersTimeout: RESPONSE_TIMEOUT_SECONDS * 1000,
    bodyTimeout: RESPONSE_TIMEOUT_SECONDS * 1000,
  });
  const recorder = new LatencyRecorder();
  const headers = headersOf(target);
  const failures: Record<string, number> = {};
  let acknowledged = 0;

  const send = async () => {
    const start = performance.now();
    const outcome = await pool
      .request({ path: '/plants', method: 'POST', headers, body: newPlant() })
      .then(async ({ statusCode, body }) => {
        await body.dump();
        return statusCode >= 200 && statusCode < 300 ? 'ok' : `status ${statusCode}`;
      })
      .catch((error: Error) => error.message);
    recorder.record(performance.now() - start);
    if (outcome === 'ok') acknowledged++;
    else failures[outcome] = (failures[outcome] ?? 0) + 1;
  };

  const total = Math.round(rate * load.seconds);
  const sent: Promise<void>[] = [];
  const start = performance.now();
  try {
    while (sent.length < total) {
      const due = Math.min(total, ((performance.now() - start) / 1000) * rate);
      while (sent.length < due) sent.push(send());
      await delay(1, undefined, { signal: load.signal });
    }
    await Promise.all(sent);
    return {
      acknowledged,
      failures,
      seconds: (performance.now() - start) / 1000,
      latency: recorder.summary(),
    };
  } finally {
    await pool.destroy();
    await Promise.all(sent);
  }
}

function headersOf({ token }: Target): Record<string, string> {
  const headers = { 'content-type': 'application/json' };
  return token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` };
}

function newPlant(): string {
  const id = randomBytes(8).readBigInt64BE();
  return `{"id":${id},"name":"Equisetum fluviatile","tag":"Equisetum"}`;
}

function countedOnly(counts: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}
