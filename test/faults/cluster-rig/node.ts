import { disturb } from '../../setup/database/postgres-server.js';
import type { User } from '../../setup/process/processes.js';
import { startProgram, type RunningProgram } from '../../setup/process/program.js';

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
  private readonly server: ReturnType<typeof disturb>;

  constructor(private readonly options: NodeOptions) {
    this.server = disturb(options.dataFolder);
  }

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
    await this.server.kill();
    await this.program?.stop();
  }

  /** Stops all processes; connections stay open, and the ports still accept new ones. */
  async freeze(): Promise<void> {
    this.program?.signal('SIGSTOP');
    await this.server.freeze();
  }

  /** Continues with Postgres, so that for a moment no Patroni prevents it from serving as before. */
  async thaw(): Promise<void> {
    await this.server.thaw();
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
}
