import { end, startOn, stopUnderLoad } from '../setup/service/built-service.js';
import { metricAt } from '../setup/service/metrics.js';
import type { PlayedService } from './play-history.js';
import { findFreePorts } from '../setup/process/ports.js';
import type { TestService } from '../setup/service/service.js';

/** A built service in a process of its own that histories use like `TestService`, and also kill. Other tests use `startOn`. */
export interface KillableService extends PlayedService {
  kill(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a built service on the database of another one, behind the same proxy. */
export async function startBeside(
  { database, proxy, token }: TestService,
  env: Record<string, string>,
): Promise<KillableService> {
  const [port] = await findFreePorts(1);
  const start = () => startOn(proxy.url, { ...env, PORT: String(port), SHUTDOWN_TIMEOUT_MS: '0' });
  let service = await start();
  return {
    url: service.url,
    port: port!,
    token,
    database,
    proxy,
    metric: async (name) => (await metricAt(service.url, name))!,
    async restart() {
      await stopUnderLoad(service);
      service = await start();
    },
    async kill() {
      service.command.process.kill('SIGKILL');
      await service.command.exit();
      service = await start();
    },
    close: () => end(service.command),
  };
}
