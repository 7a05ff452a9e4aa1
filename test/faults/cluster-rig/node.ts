import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf, sendSignal, type User } from '../../setup/service/processes.js';
import { startProgram, type RunningProgram } from '../../setup/service/program.js';

const HEALTH_TIMEOUT_MS = 1000;

/** Patroni itself gives up earlier. */
const SWITCHOVER_TIMEOUT_MS = 60_000;

export interface NodeOptions {
  readonly name: string;
  readonly port: number;
  readonly restPort: number;
  readonly patroni: string;
  readonly configFile: string;
  readonly dataFolder: string;
  readonly logFile: string;
  readonly user: User;
}

/** A machine of the cluster: Patroni, and the Postgres server that it runs. */
export class ClusterNode {
  private program: RunningProgram | undefined;

  constructor(private readonly options: NodeOptions) {}

  get name(): string {
    return this.options.name;
  }

  /** @returns an address for a superuser, which leads to this server alone */
  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.options.port}`;
  }

  async start(): Promise<void> {
    const { patroni, configFile, logFile, user } = this.options;
    this.program = await startProgram([patroni, configFile], logFile, { user });
  }

  /** Kills all processes at once, as a loss of power does. */
  async kill(): Promise<void> {
    this.program?.signal('SIGKILL');
    const pids = await this.stopServer();
    for (const pid of pids) sendSignal(pid, 'SIGKILL');
    while (pids.some((pid) => commandOf(pid) !== '') || this.program?.hasEnded() === false) {
      await delay(10);
    }
  }

  /** Stops all processes; connections stay open, and the ports still accept new ones. */
  async freeze(): Promise<void> {
    this.program?.signal('SIGSTOP');
    await this.stopServer();
  }

  /** Continues with Postgres, so that for a moment no Patroni prevents it from serving as before. */
  async thaw(): Promise<void> {
    for (const pid of await this.stopServer()) sendSignal(pid, 'SIGCONT');
    this.program?.signal('SIGCONT');
  }

  /** Asks Patroni for a role as a load balancer does: `primary`, `replica` or `sync`. */
  async hasRole(role: string): Promise<boolean> {
    const signal = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
    return fetch(`http://127.0.0.1:${this.options.restPort}/${role}`, {
      method: 'HEAD',
      signal,
    }).then(
      ({ status }) => status === 200,
      () => false,
    );
  }

  /** @returns whether Patroni made another node the primary; it refuses when no standby is ready */
  async switchOver(): Promise<boolean> {
    const signal = AbortSignal.timeout(SWITCHOVER_TIMEOUT_MS);
    const body = JSON.stringify({ leader: this.name });
    const url = `http://127.0.0.1:${this.options.restPort}/switchover`;
    const response = await fetch(url, { method: 'POST', body, signal });
    await response.text();
    return response.status === 200;
  }

  /**
   * Stops the processes of Postgres, the postmaster first, so that it starts no others.
   *
   * @returns the postmaster and its children; nothing when Postgres does not run
   */
  private async stopServer(): Promise<number[]> {
    const { dataFolder } = this.options;
    const file = await readFile(`${dataFolder}/postmaster.pid`, 'utf8').catch(() => '');
    const postmaster = Number(file.split('\n')[0]);
    // The file outlives a killed server, and another process may have its number by now.
    if (postmaster === 0 || !commandOf(postmaster).includes(dataFolder)) return [];
    sendSignal(postmaster, 'SIGSTOP');
    const children = await childrenOf(postmaster);
    for (const pid of children) sendSignal(pid, 'SIGSTOP');
    return [postmaster, ...children];
  }
}

/** @returns the command line of a process; nothing when it has ended, even if its parent has not noticed */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
