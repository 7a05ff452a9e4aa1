import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '../setup/process/command.js';
import { openConnection } from '../setup/http/raw-http.js';
import type { Resources } from '../setup/jest/resources.js';
import { until } from '../setup/time/until.js';

/**
 * Starts nginx, and waits until it listens at a port of loopback. It is stopped with the resources.
 *
 * @throws Error with its output when it ends before
 */
export async function startNginx(
  resources: Resources,
  [file, ...args]: readonly [string, ...string[]],
  port: number,
  env: Record<string, string> = {},
): Promise<void> {
  // Debian's nginx is where not every user looks.
  const nginx = runProgram(file, args, { PATH: `${process.env['PATH']}:/usr/sbin`, ...env });
  resources.defer(async () => {
    nginx.process.kill('SIGTERM');
    await nginx.exit();
  });
  await until(async () => {
    if (nginx.process.exitCode !== null) throw new Error(`nginx ended: ${nginx.stderr}`);
    const socket = await openConnection(port).catch(() => undefined);
    socket?.destroy();
    return socket !== undefined;
  });
}

/**
 * Starts nginx with the site in deploy/nginx.
 *
 * @param dir the folder of its files
 * @param instances the ports of the service
 * @param edit adapts the site
 */
export async function startSite(
  resources: Resources,
  dir: string,
  ports: { readonly http: number; readonly https: number; readonly instances: readonly number[] },
  edit: (site: string) => string,
): Promise<void> {
  const servers = ports.instances.map((port) => `server 127.0.0.1:${port} max_fails=0;`);
  const site = (await readFile('deploy/nginx/plant-store.conf', 'utf8'))
    .replace(/(?:server 127\.0\.0\.1:\d+ max_fails=0;\s*)+/, servers.join(' '))
    .replaceAll(/^ *listen \[::\].*$/gm, '')
    .replace('listen 80;', `listen 127.0.0.1:${ports.http};`)
    .replace('listen 443', `listen 127.0.0.1:${ports.https}`);
  const globals = `pid ${join(dir, 'pid')}; error_log ${join(dir, 'log')}; daemon off;`;
  const config = join(dir, 'nginx.conf');
  await writeFile(config, `${globals} events {} http { access_log off;\n${edit(site)}\n}`);
  await startNginx(resources, ['nginx', '-c', config], ports.https);
}
