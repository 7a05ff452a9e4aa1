import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { version } from '../../src/config/version.js';
import { end, runService, urlOf } from '../setup/service/built-service.js';
import { untilIdleAt } from '../setup/service/clean-state.js';
import { startCollector, type Collector } from '../setup/http/collector.js';
import { NODE, runBefore, runCommand, runProgram, type Command } from '../setup/process/command.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { startDatabaseProxy, type DatabaseProxy } from '../setup/database/database-proxy.js';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { postJson } from '../setup/http/post-plant.js';
import { startLoad } from '../setup/model/load.js';
import { METRICS_SETTING, METRICS_TOKEN } from '../setup/service/metrics.js';
import { createToken } from '../setup/service/tokens.js';
import { childrenOf, isRunning } from '../setup/process/processes.js';
import { beginPlant, openConnection, readResponses } from '../setup/http/raw-http.js';
import { useResources } from '../setup/jest/resources.js';
import { until } from '../setup/time/until.js';

const METRICS = `GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${METRICS_TOKEN}\r\n\r\n`;
const READY = 'GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n';
const NEVER_MS = '600000';
const OVERLOADED = expect.stringContaining('50301') as unknown;

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const;

/** SHUTDOWN_TIMEOUT_MS, and the time that a worker has after it. */
const STOP_MS = 100;
const STOP_GRACE_MS = 5000;

/**
 * Stops the intervals of a service that last a second or longer, and lets a second pass at each SIGUSR2. The interval at
 * which the log is written is shorter.
 */
const SECONDS_PASS = `
  const start = setInterval;
  globalThis.setInterval = (callback, milliseconds) => {
    if (milliseconds < 1000) return start(callback, milliseconds);
    if (milliseconds === 1000) process.on('SIGUSR2', callback);
  };`;

/** The primary replaces workers at once, whatever delay it chose. */
const NO_DELAYS = runBefore(`
  import timers from 'node:timers/promises';
  import { syncBuiltinESMExports } from 'node:module';
  if (process.argv[1].endsWith('main.js')) {
    timers.setTimeout = (milliseconds, value) => new Promise((done) => setImmediate(done, value));
    syncBuiltinESMExports();
  }`);

/** The time of the workers to stop is over at SIGUSR2. */
const STOP_TIME_ENDS = `
  const startStopTimeout = setTimeout;
  globalThis.setTimeout = (callback, milliseconds, ...args) => {
    if (milliseconds !== ${STOP_MS + STOP_GRACE_MS}) return startStopTimeout(callback, milliseconds, ...args);
    process.on('SIGUSR2', callback);
  };`;

/** The time of the primary to respond to a worker is over at SIGWINCH. */
const SCRAPE_TIME_ENDS = `
  const startTimeout = setTimeout;
  globalThis.setTimeout = (callback, milliseconds, ...args) => {
    if (milliseconds !== 3000) return startTimeout(callback, milliseconds, ...args);
    process.on('SIGWINCH', callback);
    return startTimeout(() => undefined, milliseconds);
  };`;

/** A worker that stops waits for the collector, however long a busy one takes. */
const COLLECTOR_TIME = runBefore(`
  import timers from 'node:timers/promises';
  import { syncBuiltinESMExports } from 'node:module';
  const wait = timers.setTimeout;
  timers.setTimeout = (milliseconds, ...args) =>
    milliseconds === 1000 ? new Promise(() => undefined) : wait(milliseconds, ...args);
  syncBuiltinESMExports();`);

interface Service {
  readonly command: Command;
  readonly pid: number;
  readonly url: string;
  readonly port: number;
}

let database: TestDatabase;
let proxy: DatabaseProxy;
let token: string;
const commands: Command[] = [];
const resources = useResources();

beforeAll(async () => {
  database = await openTestDatabase();
  proxy = await startDatabaseProxy(database.url);
  token = await createToken(database.url);
});
afterAll(async () => {
  await Promise.all(commands.map(end));
  await proxy.close();
  await database.close();
});

function run(env: Record<string, string> = {}): Command {
  const command = runService({ DATABASE_URL: proxy.url, WEB_CONCURRENCY: '2', ...env });
  commands.push(command);
  return command;
}

async function start(env: Record<string, string> = {}): Promise<Service> {
  const command = run(env);
  const url = await urlOf(command);
  return { command, pid: command.process.pid!, url, port: Number(new URL(url).port) };
}

/** @returns the processes of both workers */
async function workersOf({ pid }: Service): Promise<[number, number]> {
  const workers = await childrenOf(pid);
  expect(workers).toHaveLength(2);
  return workers as [number, number];
}

let serial = 0;

/** Opens connections until both workers have one, and returns one of each. */
async function connectToBoth({ port, command }: Service): Promise<[Socket, Socket]> {
  const sockets = new Map<number, Socket>();
  while (sockets.size < 2) {
    const socket = await openConnection(port);
    socket.on('error', () => undefined);
    const id = `connection-${++serial}`;
    socket.write(`GET /health/live HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n\r\n`);
    await readResponses(socket, 1);
    const [line] = await command.waitFor(new RegExp(`^.*"requestId":"${id}".*$`, 'm'));
    sockets.set((JSON.parse(line) as { worker: number }).worker, socket);
  }
  expect([...sockets.keys()].sort()).toEqual([1, 2]);
  return [sockets.get(1)!, sockets.get(2)!];
}

async function post(url: string, body: string, bearer = token): Promise<number> {
  const response = await postJson(url, bearer, body);
  return response.status;
}

async function scrape(socket: Socket): Promise<string[]> {
  socket.write(METRICS);
  const [response] = await readResponses(socket, 1);
  expect(response?.status).toBe(200);
  return response!.body.split('\n');
}

/** Waits until the metrics, which the workers send once a second, contain all of `lines`. */
async function waitForMetrics(socket: Socket, lines: string[]): Promise<void> {
  await until(async () => {
    const metrics = await scrape(socket);
    return lines.every((line) => metrics.includes(line));
  });
}

const traceparent = (traceId: string) => `Traceparent: 00-${traceId}-${'3'.repeat(16)}-01`;

const bodyOf = (id: number) => `{"id":${id},"name":"in flight"}`;

/** Sends the head of a request on each connection, to be finished later. */
async function begin(sockets: Socket[]): Promise<void> {
  for (const [id, socket] of sockets.entries()) await beginPlant(socket, token, bodyOf(id));
}

async function expectFinished(sockets: Socket[]): Promise<void> {
  const finished = { status: 200, headers: { connection: 'close' } };
  for (const [id, socket] of sockets.entries()) {
    socket.write(bodyOf(id));
    expect(await readResponses(socket)).toMatchObject([finished]);
  }
}

async function refusesConnections(port: number): Promise<void> {
  await until(async () => {
    const socket = await openConnection(port).catch(() => undefined);
    socket?.on('error', () => undefined).destroy();
    return socket === undefined;
  });
}

// On other systems, several processes cannot listen on one address, and the service refuses to start.
const describeOnLinux = process.platform === 'linux' ? describe : describe.skip;

describeOnLinux('several workers', () => {
  let service: Service;
  let sockets: [Socket, Socket];
  const counted = [
    'plant_store_plants_total{outcome="created"} 200',
    'plant_store_plants_total{outcome="refused"} 200',
    'plant_store_workers 2',
  ];

  beforeAll(async () => {
    service = await start({
      ...NO_DELAYS,
      SHUTDOWN_TIMEOUT_MS: NEVER_MS,
    });
    sockets = await connectToBoth(service);
    const ids = Array.from({ length: 200 }, (_, i) => i + 1000);
    const bodies = ids.flatMap((id) => ['a', 'b'].map((name) => `{"id":${id},"name":"${name}"}`));
    const statuses = await Promise.all(bodies.map((body) => post(service.url, body)));
    expect(statuses.filter((status) => status === 200)).toHaveLength(200);
    expect(statuses.filter((status) => status === 400)).toHaveLength(200);
    for (const socket of sockets) await waitForMetrics(socket, counted);
  });

  it('store a plant once when both receive it, and each show the sum of their metrics', async () => {
    const stored = await database.query('SELECT FROM plants WHERE id BETWEEN 1000 AND 1199');
    expect(stored).toHaveLength(200);
    for (const socket of sockets) {
      await waitForMetrics(socket, [
        ...counted,
        'plant_store_worker_restarts_total 0',
        `plant_store_build_info{version="${version}"} 1`,
      ]);
    }
  });

  it('have none of their settings in their command line, which everybody on the machine can read', async () => {
    for (const worker of await workersOf(service)) {
      const commandLine = await readFile(`/proc/${worker}/cmdline`, 'utf8');
      expect(commandLine).toContain('worker.js');
      expect(commandLine).not.toContain('postgres:');
    }
  });

  it('do not share their address with those of another service', async () => {
    const other = run({ PORT: String(service.port), WEB_CONCURRENCY: '2' });
    expect(await other.exit()).toBe(1);
    expect(other.stderr).toBe(
      `The address 127.0.0.1:${service.port} is taken by another program. Set PORT to a free one.\n`,
    );
    expect(other.stdout).toMatch(/^[^\n]+The Plant Store \S+ starts\."\}\n$/);
  });

  it('show their metrics while one hangs and while the database is away', async () => {
    const [victim] = await workersOf(service);
    process.kill(victim, 'SIGSTOP');
    proxy.cut();
    const scrapes = sockets.map((socket) => scrape(socket));
    const metrics = await Promise.any(scrapes);
    process.kill(victim, 'SIGCONT');
    proxy.restore();
    expect(metrics).toEqual(expect.arrayContaining(counted));
    await Promise.all(scrapes);
  });

  it('ignore the signals that systemd and terminals send to every process', async () => {
    for (const worker of await workersOf(service)) {
      for (const signal of SIGNALS) process.kill(worker, signal);
    }
    for (const socket of sockets) await expect(scrape(socket)).resolves.not.toEqual([]);
    // At SIGUSR1, Node would open its debugger, and say so.
    expect(service.command.stderr).toBe('');
  });

  it('are replaced when they die, and no counter falls', async () => {
    const [victim] = await workersOf(service);
    process.kill(victim, 'SIGKILL');
    const [, number] = await service.command.waitFor(
      /"level":50.*Worker (\d) ended \(SIGKILL\); it is replaced in 100 ms/,
    );
    const metrics = await scrape(sockets[number === '1' ? 1 : 0]);
    expect(metrics).toEqual(expect.arrayContaining(counted.slice(0, 2)));
    await service.command.waitFor(new RegExp(`Worker ${number} listens again`));
    sockets = await connectToBoth(service);
    for (const socket of sockets) {
      expect(await scrape(socket)).toEqual(expect.arrayContaining(counted.slice(0, 2)));
      await waitForMetrics(socket, [...counted, 'plant_store_worker_restarts_total 1']);
    }
  });

  it('are replaced after a longer delay when they cannot start, log why, and recover with the database', async () => {
    const before = service.command.stdout.match(/listens again/g)?.length ?? 0;
    proxy.cut();
    for (const worker of await workersOf(service)) process.kill(worker, 'SIGKILL');
    await service.command.waitFor(/Worker \d ended \(exit code 1\): .+; it is replaced in 200 ms/);
    proxy.restore();
    await service.command.waitFor(new RegExp(`(listens again[^]*){${before + 2}}`));
    sockets = await connectToBoth(service);
  });

  it('lose no request under load when a terminal sends SIGINT to all processes, and end with exit code 0', async () => {
    await untilIdleAt(service.url);
    const load = startLoad(resources, () => service.url, token);
    await load.progress(200);
    await begin(sockets);
    const workers = await workersOf(service);
    for (const pid of [...workers, service.pid]) process.kill(pid, 'SIGINT');
    await refusesConnections(service.port);
    await expectFinished(sockets);
    expect(await service.command.exit()).toBe(0);
    await load.stop();
    expect(workers.filter(isRunning)).toEqual([]);
    expect([...load.failures.keys()].filter((status) => status !== 0)).toEqual([]);
    const stored = await database.query<{ id: string }>('SELECT id::text AS id FROM plants');
    const ids = new Set(stored.map(({ id }) => id));
    expect([...load.acknowledged, '0', '1'].filter((id) => !ids.has(id))).toEqual([]);
  });
});

describeOnLinux('several workers whose time the test holds', () => {
  let service: Service;

  beforeAll(async () => {
    service = await start({
      ...runBefore(`${SECONDS_PASS}${SCRAPE_TIME_ENDS}${STOP_TIME_ENDS}`),
      SHUTDOWN_TIMEOUT_MS: String(STOP_MS),
    });
  });

  it('send their metrics to the primary once a second', async () => {
    const sockets = await connectToBoth(service);
    expect(await post(service.url, '{"id":3000,"name":"a"}')).toBe(200);
    const workers = await workersOf(service);
    const passSecond = () => workers.forEach((worker) => process.kill(worker, 'SIGUSR2'));
    passSecond();
    for (const socket of sockets) {
      await waitForMetrics(socket, ['plant_store_plants_total{outcome="created"} 1']);
    }
    // The gauges stand still between two seconds, and the last one may have shown a connection that was still busy.
    const passing = setInterval(passSecond, 10);
    await untilIdleAt(service.url).finally(() => clearInterval(passing));
  });

  it('refuse scrapes when the primary does not respond in time, and not when it responds again', async () => {
    const workers = await workersOf(service);
    const sockets = await connectToBoth(service);
    process.kill(service.pid, 'SIGSTOP');
    for (const socket of sockets) socket.write(METRICS);
    // The responses to these requests show that the workers have read what was sent before.
    for (const socket of await connectToBoth(service)) socket.destroy();
    for (const pid of workers) process.kill(pid, 'SIGWINCH');
    for (const socket of sockets) {
      expect(await readResponses(socket, 1)).toMatchObject([{ status: 503, body: OVERLOADED }]);
    }
    process.kill(service.pid, 'SIGCONT');
    for (const socket of sockets) await expect(scrape(socket)).resolves.not.toEqual([]);
  });

  it('are killed when one of them hangs beyond all timeouts', async () => {
    const workers = await workersOf(service);
    process.kill(workers[0], 'SIGSTOP');
    service.command.process.kill('SIGTERM');
    await until(() => !isRunning(workers[1]));
    expect(workers.filter(isRunning)).toEqual([workers[0]]);
    service.command.process.kill('SIGUSR2');
    await service.command.waitFor(/Workers that did not stop in time are killed/);
    expect(await service.command.exit()).toBe(0);
    expect(workers.filter(isRunning)).toEqual([]);
  });
});

describeOnLinux('several workers on a terminal', () => {
  it('say where Swagger UI is, and how to create a token, and have a log for people, in colours', async () => {
    const run = `exec ${NODE.join(' ')} dist/main.js`;
    const command = runProgram('script', ['--quiet', '--command', run, '/dev/null'], {
      ...METRICS_SETTING,
      DATABASE_URL: proxy.url,
      PORT: '0',
      TERM: 'xterm',
      WEB_CONCURRENCY: '2',
    });
    // The terminal is closed then, and the service stops.
    resources.defer(() => void command.process.kill('SIGKILL'));
    const url = await urlOf(command);
    const [, hint] = await command.waitFor(/(Swagger UI.* NAME)/);
    expect(hint).toBe(
      `Swagger UI is at ${url}/docs. To create a token: ./plant-store token create NAME`,
    );
    await fetchDocumented(`${url}/health/live`);
    const [entry] = await command.waitFor(/[^\n]*GET \/health\/live[^\n]*\n/);
    expect(entry).toMatch(
      /\[\d\d:\d\d:\d\d\] \p{Cc}\[32m200\p{Cc}\[\d+m GET \/health\/live .+, worker \d, request /u,
    );
    const [main] = await childrenOf(command.process.pid!);
    process.kill(main!, 'SIGTERM');
    await command.exit();
  });
});

describeOnLinux('several workers that stop', () => {
  it('are not ready but serve during the delay, are not replaced, and end with exit code 1 at a second signal', async () => {
    // No time passes in the primary: a second signal of another kind counts at once.
    const noTime = `if (process.argv[1].endsWith('main.js')) performance.now = () => 0;`;
    const service = await start({ SHUTDOWN_DELAY_MS: NEVER_MS, ...runBefore(noTime) });
    const sockets = await connectToBoth(service);
    service.command.process.kill('SIGTERM');
    const ready = () => fetchDocumented(`${service.url}/health/ready`);
    await until(async () => (await ready()).status !== 200);
    for (const socket of sockets) {
      socket.write(READY);
      expect(await readResponses(socket)).toMatchObject([{ status: 503 }]);
    }
    expect(await post(service.url, '{"id":2000,"name":"a"}')).toBe(200);
    const [victim] = await workersOf(service);
    process.kill(victim, 'SIGKILL');
    await until(() => !isRunning(victim));
    service.command.process.kill('SIGINT');
    // Waits for the end of the output, which the workers hold open, too.
    expect(await service.command.exit()).toBe(1);
    expect(service.command.stdout).toMatch(
      /"level":40,"time":"[^"]+","signal":"SIGINT","msg":"The Plant Store ends without waiting for requests: it received a second signal, SIGINT\."/,
    );
    expect(service.command.stdout).not.toContain('replaced');
    // A worker that was not killed would notice this.
    expect(service.command.stdout).not.toContain('the primary has ended');
  });

  const traceIds = ['1'.repeat(32), '2'.repeat(32)];

  async function startTraced(env: Record<string, string>) {
    const collector = await startCollector();
    resources.defer(() => collector.close());
    const service = await start({
      ...COLLECTOR_TIME,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_TIMEOUT: '60000',
      SHUTDOWN_TIMEOUT_MS: NEVER_MS,
      ...env,
    });
    return { collector, service };
  }

  async function beginTraced(sockets: Socket[]): Promise<void> {
    for (const [id, socket] of sockets.entries()) {
      await beginPlant(socket, token, bodyOf(id), [traceparent(traceIds[id]!)]);
    }
  }

  function expectTraced(collector: Collector): void {
    for (const id of traceIds) {
      const spans = collector.spans.filter(({ traceId }) => traceId === id);
      expect(spans.map(({ name }) => name)).toContain('POST /plants');
    }
  }

  it('send their last traces when a signal stops the primary', async () => {
    const { collector, service } = await startTraced({});
    const inFlight = await connectToBoth(service);
    await beginTraced(inFlight);
    service.command.process.kill('SIGTERM');
    await refusesConnections(service.port);
    await expectFinished(inFlight);
    expect(await service.command.exit()).toBe(0);
    expectTraced(collector);
  });

  it('send the responses to the requests in flight, refuse scrapes at once, also those that wait for it, send their last traces, and end, when the primary is killed', async () => {
    const { collector, service } = await startTraced({ SHUTDOWN_DELAY_MS: NEVER_MS });
    const [waiting, later] = await connectToBoth(service);
    const inFlight = await connectToBoth(service);
    await beginTraced(inFlight);
    process.kill(service.pid, 'SIGSTOP');
    waiting.write(METRICS);
    later.write(METRICS.slice(0, -1));
    // The responses to these requests show that the workers have read what was sent before.
    for (const socket of await connectToBoth(service)) socket.destroy();
    service.command.process.kill('SIGKILL');
    const refused = {
      status: 503,
      headers: { connection: 'close' },
      body: expect.stringContaining('50302'),
    };
    expect(await readResponses(waiting)).toMatchObject([refused]);
    await service.command.waitFor(/(This worker stops: the primary has ended\.[^]*){2}/);
    later.write(METRICS.slice(-1));
    expect(await readResponses(later)).toMatchObject([refused]);
    await refusesConnections(service.port);
    await expectFinished(inFlight);
    await service.command.exit();
    expect(
      service.command.stdout.match(/This worker stops: the primary has ended\./g),
    ).toHaveLength(2);
    expectTraced(collector);
  });

  it('stop gracefully while they start', async () => {
    const command = run();
    await until(async () => (await childrenOf(command.process.pid!)).length > 0);
    command.process.kill('SIGTERM');
    expect(await command.exit()).toBe(0);
    expect(command.stderr).toBe('');
  });
});

describeOnLinux('a start of several workers that cannot succeed', () => {
  it('reports once that the first worker ended, after its stack and all else that it wrote besides its log', async () => {
    const crash = `if (process.argv[1].endsWith('worker.js')) {
      console.log('a debugging message');
      throw new Error('boom');
    }`;
    const command = run(runBefore(crash));
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toContain('a debugging message\n');
    expect(command.stderr).toMatch(
      /Error: boom\n +at [^]+\nThe first worker ended \(exit code 1\) before it listened\.\n$/,
    );
    expect(command.stderr.match(/The first worker ended/g)).toHaveLength(1);
    expect(command.stdout).toMatch(/^[^\n]+The Plant Store \S+ starts\."\}\n$/);
  });
});

it('several workers need Linux, and the start says so', async () => {
  const platform = 'Object.defineProperty(process, "platform", { value: "darwin" })';
  const command = runCommand(['dist/main.js'], { ...runBefore(platform), WEB_CONCURRENCY: '2' });
  expect(await command.exit()).toBe(1);
  expect(command.stderr).toMatch(/^WEB_CONCURRENCY must be 1 on this system: .*\n$/);
});
