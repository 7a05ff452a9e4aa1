import { join } from 'node:path';
import { untilIdleAt } from '../setup/service/clean-state.js';
import { ROOT } from '../setup/service/command.js';
import { METRICS_SETTING } from '../setup/service/metrics.js';
import { findFreePorts } from '../setup/service/ports.js';
import { startProgram, waitFor, type RunningProgram } from '../setup/service/program.js';
import { createToken, isReady } from '../setup/service/service-program.js';
import { startPlainClient, startServiceClients, type Clients } from './clients.js';
import type { Cluster } from './cluster.js';
import { History } from './history.js';
import type { Target } from './report.js';

const START_SECONDS = 30;

/** More plants than any clients send in a run. */
const IDS_OF_CLIENTS = 1_000_000_000_000n;

/** A built service and a plain client behind each proxy, all under load. */
export interface Load {
  readonly targets: readonly Target[];
  /** @returns seconds since the start of the load */
  now(): number;
  /** Whether every service still is the process that was started. */
  isRunning(): boolean;
  /** Lets the clients end their requests, and sends no more. */
  stop(): Promise<void>;
  /** @throws Error when a service still holds what a request took, although no client sends any more */
  untilIdle(): Promise<void>;
  /** Ends clients and services. */
  close(): Promise<void>;
}

/** @throws Error when the schema cannot be made, or a service does not start */
export async function startLoad(
  urls: Cluster['urls'],
  folder: string,
  signal: AbortSignal,
): Promise<Load> {
  await using started = new AsyncDisposableStack();
  const token = await createToken(urls.haproxy, 'failover');
  const services: { readonly proxy: Target['proxy']; readonly url: string }[] = [];
  const programs: RunningProgram[] = [];
  for (const proxy of ['haproxy', 'pgbouncer'] as const) {
    const [port] = await findFreePorts(1);
    const program = await startProgram(
      [process.execPath, join(ROOT, 'dist/main.js')],
      join(folder, `service-${proxy}.log`),
      { env: { DATABASE_URL: urls[proxy], PORT: String(port), ...METRICS_SETTING } },
    );
    started.defer(() => program.stop());
    programs.push(program);
    const url = `http://127.0.0.1:${port}`;
    services.push({ proxy, url });
    await waitFor('The start of the service', START_SECONDS, signal, () => isReady(url));
  }

  const start = performance.now();
  const now = () => (performance.now() - start) / 1000;
  const targets: Target[] = [];
  const clients: Clients[] = [];
  const nextTarget = (client: Target['client'], proxy: Target['proxy']) => {
    const firstId = IDS_OF_CLIENTS * BigInt(targets.length);
    const history = new History();
    targets.push({ client, proxy, history });
    return { firstId, history, now };
  };
  for (const { proxy, url } of services) {
    clients.push(startServiceClients(url, token, nextTarget('service', proxy)));
    clients.push(startPlainClient(urls[proxy], nextTarget('plain', proxy)));
  }
  const stop = async () => {
    await Promise.all(clients.map((each) => each.stop()));
  };
  started.defer(stop);
  const owned = started.move();
  return {
    targets,
    now,
    isRunning: () => !programs.some((program) => program.hasEnded()),
    stop,
    async untilIdle() {
      await Promise.all(services.map(({ url }) => untilIdleAt(url)));
    },
    close: () => owned.disposeAsync(),
  };
}
