import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { readConfig } from '../src/config/config.js';
import { prepareDatabase } from '../src/database/prepare-database.js';
import { runCommand, type Command } from './setup/command.js';
import { openTestDatabase, type TestDatabase } from './setup/database.js';
import { startDatabaseProxy, type DatabaseProxy } from './setup/database-proxy.js';
import { startLoad, stopLoads } from './setup/load.js';
import { childrenOf } from './setup/processes.js';
import { openConnection, plantHead, readAnswers, type RawAnswer } from './setup/raw-http.js';

const SCRAPE_SECRET = 'scrape-me';

/** A service of several workers, as an operator runs it. Its end is the end of every process it started. */
interface Service {
  readonly command: Command;
  readonly pid: number;
  readonly url: string;
  readonly port: number;
}

/** A connection that is kept open, and the number of the worker at its other end. */
interface Connection {
  readonly socket: Socket;
  readonly worker: number;
}

let database: TestDatabase;
let proxy: DatabaseProxy;
let token: string;
let started: Command[];

beforeAll(async () => {
  database = await openTestDatabase();
  proxy = await startDatabaseProxy(database.url);
  await prepareDatabase({ ...readConfig({}).database, url: database.url }, () => undefined);
  const create = runCommand(['dist/cli.js', 'token', 'create', 'test'], {
    DATABASE_URL: database.url,
  });
  await create.exit();
  token = create.stdout.trim();
});
beforeEach(async () => {
  started = [];
  proxy.restore();
  await database.query('TRUNCATE plants');
});
afterEach(async () => {
  await stopLoads();
  for (const command of started) {
    for (const worker of await childrenOf(command.process.pid!)) process.kill(worker, 'SIGKILL');
    command.process.kill('SIGKILL');
    await command.exit();
  }
});
afterAll(async () => {
  await proxy.close();
  await database.close();
});

function run(workers: number, env: Record<string, string> = {}): Command {
  const command = runCommand(['dist/main.js'], {
    PORT: '0',
    DATABASE_URL: proxy.url,
    WEB_CONCURRENCY: String(workers),
    METRICS_TOKEN_SHA256: createHash('sha256').update(SCRAPE_SECRET).digest('hex'),
    ...env,
  });
  started.push(command);
  return command;
}

async function start(workers: number, env: Record<string, string> = {}): Promise<Service> {
  const command = run(workers, env);
  const [, url] = await command.waitFor(/listens on (http:[^"\s]+)/);
  return { command, pid: command.process.pid!, url: url!, port: Number(new URL(url!).port) };
}

/** The workers that wrote a line about a request to `route`. */
function workersIn({ command }: Service, route: string): number[] {
  const lines = command.stdout.split('\n').filter((line) => line.includes(`"route":"${route}"`));
  return [...new Set(lines.map((line) => (JSON.parse(line) as { worker: number }).worker))].sort();
}

let serial = 0;

/** Opens connections until each worker has one. */
async function connectToAll(service: Service, workers: number): Promise<Connection[]> {
  const connections: Connection[] = [];
  while (new Set(connections.map(({ worker }) => worker)).size < workers) {
    const socket = await openConnection(service.port);
    socket.on('error', () => undefined);
    const id = `connection-${++serial}`;
    socket.write(`GET /health/live HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n\r\n`);
    await readAnswers(socket, 1);
    const [line] = await service.command.waitFor(new RegExp(`^.*"requestId":"${id}".*$`, 'm'));
    connections.push({ socket, worker: (JSON.parse(line) as { worker: number }).worker });
  }
  return connections;
}

function post(url: string, body: string, bearer = token): Promise<number> {
  return fetch(`${url}/plants`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body,
  }).then(async (response) => {
    await response.arrayBuffer();
    return response.status;
  });
}

async function scrapeOn(socket: Socket): Promise<string> {
  socket.write(
    `GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${SCRAPE_SECRET}\r\n\r\n`,
  );
  const [answer] = await readAnswers(socket, 1);
  if (answer === undefined) throw new Error('The connection was closed without an answer.');
  expect(answer.status).toBe(200);
  return answer.body;
}

function valueOf(text: string, series: string): number {
  const line = text.split('\n').find((it) => it.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}

/** All that may never fall: counters, and the buckets, counts and sums of histograms. */
function countersIn(text: string): Map<string, number> {
  const names = [...text.matchAll(/^# TYPE (\S+) (?:counter|histogram)$/gm)].map(
    ([, name]) => name!,
  );
  const series = text.split('\n').filter((line) => names.some((name) => line.startsWith(name)));
  return new Map(
    series.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))] as const;
    }),
  );
}

const CREATED = 'plant_store_plants_total{outcome="created"}';

describe('several workers', () => {
  it('all answer, and the log says which one did', async () => {
    const service = await start(4);
    const connections = await connectToAll(service, 4);
    const workers = new Set(connections.map(({ worker }) => worker));
    expect([...workers].sort()).toEqual([1, 2, 3, 4]);
  });

  it('of plants that race for an id exactly one wins, and one /metrics counts all, whoever answers', async () => {
    const service = await start(4);
    const outcomes = new Map<string, number[]>();
    const sent = 2000;
    for (let id = 0; id < sent / 8;) {
      const group = Array.from({ length: 10 }, () => ++id);
      // Four times each of two plants that want the same id.
      const plants = group.flatMap((it) =>
        Array.from({ length: 8 }, (_, i) => [it, i % 2] as const),
      );
      await Promise.all(
        plants.map(async ([it, name]) => {
          const status = await post(service.url, `{"id":${it},"name":"${name}"}`);
          const key = `${it} ${name}`;
          outcomes.set(key, [...(outcomes.get(key) ?? []), status]);
        }),
      );
    }
    const rows = await database.query<{ id: string; name: string }>(
      'SELECT id::text AS id, name FROM plants',
    );
    expect(rows).toHaveLength(sent / 8);
    for (const { id, name } of rows) {
      expect(outcomes.get(`${id} ${name}`)).toEqual([200, 200, 200, 200]);
      expect(outcomes.get(`${id} ${name === '0' ? '1' : '0'}`)).toEqual([400, 400, 400, 400]);
    }
    expect(workersIn(service, '/plants')).toEqual([1, 2, 3, 4]);

    for (const { socket } of await connectToAll(service, 4)) {
      const text = await scrapeOn(socket);
      expect(valueOf(text, CREATED)).toBe(sent / 8);
      expect(valueOf(text, 'plant_store_plants_total{outcome="repeated"}')).toBe((sent / 8) * 3);
      expect(valueOf(text, 'plant_store_plants_total{outcome="refused"}')).toBe((sent / 8) * 4);
      expect(valueOf(text, 'plant_store_workers')).toBe(4);
      expect(valueOf(text, 'plant_store_worker_restarts_total')).toBe(0);
      expect(valueOf(text, 'process_start_time_seconds')).toBeGreaterThan(1e9);
    }
  });

  it('share the connections that the service accepts; more are closed, and counted', async () => {
    const { port } = await start(2, { MAX_CONNECTIONS: '4' });
    const open: Socket[] = [];
    for (;;) {
      const socket = await openConnection(port);
      socket.on('error', () => undefined);
      socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
      const answers = await readAnswers(socket, 1).catch(() => []);
      if (answers.length === 0) break;
      open.push(socket);
    }
    expect(open.length).toBeLessThanOrEqual(4);
    const text = await scrapeOn(open[0]!);
    expect(valueOf(text, 'plant_store_connections_dropped_total')).toBe(1);
  });
});

describe('a worker that dies', () => {
  it('takes only its own connections with it, and is replaced; no counter falls', async () => {
    const service = await start(3);
    const load = startLoad(() => service.url, token);
    await load.progress(200);
    await load.stop();
    const connections = await connectToAll(service, 3);
    let before = countersIn(await scrapeOn(connections[0]!.socket));

    const [victim] = await childrenOf(service.pid);
    process.kill(victim!, 'SIGKILL');
    const [, number] = await service.command.waitFor(
      /"level":50.*Worker (\d) ended \(SIGKILL\); it is replaced in 100 ms/,
    );
    const others = connections.filter(({ worker }) => worker !== Number(number));
    expect(others.length).toBeGreaterThanOrEqual(2);
    for (const { socket } of others) {
      const after = countersIn(await scrapeOn(socket));
      for (const [series, value] of before) {
        expect([series, after.get(series)! >= value]).toEqual([series, true]);
      }
      before = after;
    }
    await service.command.waitFor(new RegExp(`Worker ${number} listens again`));
    const replaced = await connectToAll(service, 3);
    for (const { socket } of replaced) {
      const text = await scrapeOn(socket);
      const after = countersIn(text);
      for (const [series, value] of before) {
        expect([series, after.get(series)! >= value]).toEqual([series, true]);
      }
      before = after;
      expect(valueOf(text, CREATED)).toBe(load.acknowledged.size);
      expect(valueOf(text, 'plant_store_workers')).toBe(3);
      expect(valueOf(text, 'plant_store_worker_restarts_total')).toBe(1);
    }
  });

  it('leaves no client waiting whose connection was on its way to it', async () => {
    const service = await start(3);
    let isRunning = true;
    const clients = Array.from({ length: 32 }, async () => {
      while (isRunning) {
        const socket = await openConnection(service.port);
        socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
        await readAnswers(socket).catch(() => undefined);
      }
    });
    const victims = await childrenOf(service.pid);
    for (const [i, worker] of victims.entries()) {
      process.kill(worker, 'SIGKILL');
      await service.command.waitFor(new RegExp(`(listens again[^]*){${i + 1}}`));
    }
    isRunning = false;
    await Promise.all(clients);
  });

  it('is replaced more slowly each time', async () => {
    const service = await start(2);
    const [, victim] = await childrenOf(service.pid);
    let [pid, known] = [victim!, new Set(await childrenOf(service.pid))];
    for (const delay of [100, 200, 400]) {
      process.kill(pid, 'SIGKILL');
      await service.command.waitFor(new RegExp(`it is replaced in ${delay} ms`));
      let born: number | undefined;
      while (born === undefined) {
        born = (await childrenOf(service.pid)).find((it) => !known.has(it));
      }
      pid = born;
      known = new Set([...known, pid]);
    }
    await service.command.waitFor(/listens again/);
  });

  it('is replaced when the database is back, and the log says what was in the way', async () => {
    const service = await start(2);
    proxy.cut();
    process.kill((await childrenOf(service.pid))[0]!, 'SIGKILL');
    await service.command.waitFor(/Worker \d ended \(exit code 1\): .+; it is replaced in 200 ms/);
    proxy.restore();
    await service.command.waitFor(/listens again/);
  });
});

describe('metrics of several workers', () => {
  it('are there while a worker hangs, with what it said last', async () => {
    const service = await start(2);
    const load = startLoad(() => service.url, token);
    await load.progress(200);
    await load.stop();
    const connections = await connectToAll(service, 2);
    await scrapeOn(connections[0]!.socket);
    const [victim] = await childrenOf(service.pid);
    process.kill(victim!, 'SIGSTOP');
    const scrapes = connections.map(({ socket }) => scrapeOn(socket));
    expect(valueOf(await Promise.any(scrapes), CREATED)).toBe(load.acknowledged.size);
    process.kill(victim!, 'SIGCONT');
    for (const text of await Promise.all(scrapes)) {
      expect(valueOf(text, CREATED)).toBe(load.acknowledged.size);
    }
  });

  it('are there while the database is away', async () => {
    const service = await start(2);
    const connections = await connectToAll(service, 2);
    proxy.cut();
    for (const { socket } of connections) {
      expect(valueOf(await scrapeOn(socket), 'plant_store_workers')).toBe(2);
    }
  });
});

describe('several workers that are told to stop', () => {
  const bodyOf = (id: number) => `{"id":${id},"name":"in flight"}`;

  /** Sends the head of a request, to be finished later. */
  async function begin({ socket }: Connection, id: number): Promise<void> {
    socket.write(
      plantHead(token, [
        'Content-Type: application/json',
        `Content-Length: ${bodyOf(id).length}`,
        'Expect: 100-continue',
      ]),
    );
    const [answer] = await readAnswers(socket, 1);
    expect(answer?.status).toBe(100);
  }

  async function finish({ socket }: Connection, id: number): Promise<RawAnswer[]> {
    socket.write(bodyOf(id));
    return readAnswers(socket);
  }

  async function refusesConnections(port: number): Promise<void> {
    for (;;) {
      try {
        const socket = await openConnection(port);
        socket.on('error', () => undefined).destroy();
      } catch {
        return;
      }
    }
  }

  async function expectStored(count: number): Promise<void> {
    const rows = await database.query("SELECT id FROM plants WHERE name = 'in flight'");
    expect(rows).toHaveLength(count);
  }

  const SIGNALS: [string, (service: Service) => Promise<void>][] = [
    [
      'SIGTERM to the first process',
      ({ command }) => {
        command.process.kill('SIGTERM');
        return Promise.resolve();
      },
    ],
    [
      'SIGINT to all processes, as a terminal sends it,',
      async ({ pid }) => {
        for (const it of [...(await childrenOf(pid)), pid]) process.kill(it, 'SIGINT');
      },
    ],
  ];

  it.each(SIGNALS)(
    '%s loses no request under load, ends with 0 and leaves no process',
    async (_name, send) => {
      const service = await start(3);
      const load = startLoad(() => service.url, token);
      await load.progress(200);
      const connections = await connectToAll(service, 3);
      for (const [i, connection] of connections.entries()) await begin(connection, i);
      await send(service);
      await refusesConnections(service.port);
      for (const [i, connection] of connections.entries()) {
        expect(await finish(connection, i)).toMatchObject([
          { status: 200, headers: { connection: 'close' } },
        ]);
      }
      expect(await service.command.exit()).toBe(0);
      await load.stop();
      expect(service.command.stderr).toBe('');
      expect(service.command.stdout).not.toContain('"level":50');
      expect([...load.failures.keys()].filter((status) => status !== 0)).toEqual([]);
      await expectStored(connections.length);
      const stored = await database.query<{ id: string }>('SELECT id::text AS id FROM plants');
      const ids = new Set(stored.map(({ id }) => id));
      expect([...load.acknowledged].filter((id) => !ids.has(id))).toEqual([]);
    },
  );

  it('are not ready from then on, but serve until the delay is over', async () => {
    const service = await start(2, { SHUTDOWN_DELAY_MS: '1000' });
    const connections = await connectToAll(service, 2);
    service.command.process.kill('SIGTERM');
    while ((await fetch(`${service.url}/health/ready`)).status === 200);
    for (const { socket } of connections) {
      socket.write('GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(await readAnswers(socket)).toMatchObject([
        { status: 503, headers: { connection: 'close' } },
      ]);
    }
    expect(await post(service.url, bodyOf(1))).toBe(200);
    expect(await service.command.exit()).toBe(0);
    await expectStored(1);
  });

  it('end at once with 1 at the second signal, and leave no process', async () => {
    const service = await start(2, { SHUTDOWN_DELAY_MS: '600000' });
    service.command.process.kill('SIGTERM');
    while ((await fetch(`${service.url}/health/ready`)).status === 200);
    service.command.process.kill('SIGTERM');
    expect(await service.command.exit()).toBe(1);
  });

  it('stop in good order while they start', async () => {
    const command = run(3);
    while ((await childrenOf(command.process.pid!)).length === 0);
    command.process.kill('SIGTERM');
    expect(await command.exit()).toBe(0);
    expect(command.stderr).toBe('');
  });

  it('are killed when one hangs beyond all time-outs', async () => {
    const service = await start(2, { SHUTDOWN_TIMEOUT_MS: '100' });
    const workers = await childrenOf(service.pid);
    process.kill(workers[0]!, 'SIGSTOP');
    service.command.process.kill('SIGTERM');
    await service.command.waitFor(/Workers that did not stop in time are killed/);
    expect(await service.command.exit()).toBe(0);
    for (const worker of workers) expect(() => process.kill(worker, 0)).toThrow('ESRCH');
  });

  it('are not replaced then', async () => {
    const service = await start(2, { SHUTDOWN_DELAY_MS: '600000' });
    service.command.process.kill('SIGTERM');
    while ((await fetch(`${service.url}/health/ready`)).status === 200);
    for (const worker of await childrenOf(service.pid)) process.kill(worker, 'SIGKILL');
    expect(await service.command.exit()).toBe(0);
    expect(service.command.stdout).not.toContain('replaced');
  });

  it('finish what is in flight and end when the first process is killed', async () => {
    const service = await start(2, { SHUTDOWN_DELAY_MS: '600000' });
    const connections = await connectToAll(service, 2);
    for (const [i, connection] of connections.entries()) await begin(connection, i);
    service.command.process.kill('SIGKILL');
    await refusesConnections(service.port);
    for (const [i, connection] of connections.entries()) {
      expect(await finish(connection, i)).toMatchObject([
        { status: 200, headers: { connection: 'close' } },
      ]);
    }
    // The end of the output, which the workers hold as well.
    await service.command.exit();
    await expectStored(connections.length);
  });
});

describe('a start of several workers that cannot succeed', () => {
  it('says once that a port is taken', async () => {
    const other = createServer();
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const { port } = other.address() as AddressInfo;
    const command = run(4, { PORT: String(port) });
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toBe(
      `The address 127.0.0.1:${port} is taken by another program. Set PORT to a free one.\n`,
    );
    expect(command.stdout).toBe('');
    other.close();
  });

  it('says once that an address is not on this machine', async () => {
    const command = run(4, { HOST: '192.0.2.1', PORT: '4299' });
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toBe(
      'The address 192.0.2.1:4299 is not on this machine. Set HOST to an address of this machine.\n',
    );
  });

  it('names the settings that do not fit together', async () => {
    const command = run(4, { DATABASE_POOL_SIZE: '3' });
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toBe('WEB_CONCURRENCY must be at most DATABASE_POOL_SIZE\n');
  });
});

describe('several workers on the embedded database', () => {
  it('share it; the token and the commands work, and it stops in good order', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'plant-store-workers-'));
    await cp(process.env['TEST_TEMPLATE_DIR']!, join(dataDir, 'postgres'), { recursive: true });
    try {
      const service = await start(2, { DATABASE_URL: '', DATA_DIR: dataDir });
      const [developmentToken] = await service.command.waitFor(/plantstore_\w+/);
      expect(await post(service.url, '{"id":1,"name":"a"}', developmentToken)).toBe(200);
      const create = runCommand(['dist/cli.js', 'token', 'create', 'x'], { DATA_DIR: dataDir });
      expect(await create.exit()).toBe(0);
      await connectToAll(service, 2);
      expect(await post(service.url, '{"id":1,"name":"a"}', create.stdout.trim())).toBe(200);
      service.command.process.kill('SIGTERM');
      expect(await service.command.exit()).toBe(0);
      expect(service.command.stderr).toContain(developmentToken);
      expect(service.command.stdout).not.toContain(developmentToken);
    } finally {
      await rm(dataDir, { recursive: true });
    }
  });
});
