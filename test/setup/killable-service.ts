import { createHash } from 'node:crypto';
import { startOn, stop } from './built-service.js';
import type { PlayedService } from './play-history.js';
import { findFreePorts } from './ports.js';
import type { TestService } from './service.js';

const METRICS_TOKEN = 'scrape-me';

/** A built service in a process of its own. */
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
  const start = () =>
    startOn(proxy.url, {
      ...env,
      PORT: String(port),
      SHUTDOWN_TIMEOUT_MS: '0',
      METRICS_TOKEN_SHA256: createHash('sha256').update(METRICS_TOKEN).digest('hex'),
    });
  let service = await start();
  const kill = async () => {
    service.command.process.kill('SIGKILL');
    await service.command.exit();
  };
  return {
    url: service.url,
    port: port!,
    token,
    database,
    proxy,
    async metric(name) {
      const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
      const response = await fetch(`${service.url}/metrics`, { headers });
      const [, value] = new RegExp(`^${name} (.*)$`, 'm').exec(await response.text())!;
      return Number(value);
    },
    async restart() {
      await stop(service);
      service = await start();
    },
    async kill() {
      await kill();
      service = await start();
    },
    close: kill,
  };
}
