import { PATIENT } from '../database/patient.js';
import { untilIdleAt } from './clean-state.js';
import { runCommand, type Command } from '../process/command.js';
import { METRICS_SETTING } from './metrics.js';

const LISTENS = /listens on (http:[^"\s\p{Cc}]+)/u;

/**
 * A built service in a process of its own, as an operator runs it, for tests that kill it, signal it or read its log. The
 * others use `startService`, which is faster.
 */
export interface BuiltService {
  readonly command: Command;
  readonly url: string;
}

/** Runs a built service, which may fail to start. */
export function runService(env: Record<string, string>): Command {
  return runCommand(['dist/main.js'], { PORT: '0', ...METRICS_SETTING, ...PATIENT, ...env });
}

/** Starts a built service on a database. */
export async function startOn(
  databaseUrl: string,
  env: Record<string, string> = {},
): Promise<BuiltService> {
  const command = runService({ DATABASE_URL: databaseUrl, ...env });
  return { command, url: await urlOf(command) };
}

/** Waits until a service listens, and returns its URL. */
export async function urlOf(service: Command): Promise<string> {
  return (await service.waitFor(LISTENS))[1]!;
}

/**
 * Stops a service gracefully, when its requests have ended.
 *
 * @throws Error when it still holds what a request took
 */
export async function stop(service: BuiltService): Promise<void> {
  await untilIdleAt(service.url).finally(() => stopUnderLoad(service));
}

/**
 * Kills a service, if it still runs, when its requests have ended.
 *
 * @throws Error when it still holds what a request took
 */
export async function end(command: Command): Promise<void> {
  const { exitCode, signalCode } = command.process;
  const listens = LISTENS.exec(command.stdout + command.stderr);
  try {
    if (exitCode === null && signalCode === null && listens !== null)
      await untilIdleAt(listens[1]!);
  } finally {
    command.process.kill('SIGKILL');
    await command.exit();
  }
}

/**
 * Stops a service gracefully while it gets requests.
 *
 * @throws Error when its exit code is not 0
 */
export async function stopUnderLoad({ command }: BuiltService): Promise<void> {
  command.process.kill('SIGTERM');
  const exitCode = await command.exit();
  if (exitCode !== 0) throw new Error(`The service ended with ${exitCode}: ${command.stderr}`);
}
