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
