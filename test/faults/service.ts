import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { NODE, ROOT } from '../setup/process/command.js';
import { isReady } from '../setup/service/is-ready.js';
import { METRICS_SETTING } from '../setup/service/metrics.js';
import { findFreePorts } from '../setup/process/ports.js';
import { startProgram, type RunningProgram } from '../setup/process/program.js';
import { waitFor } from './wait-for.js';

const READY_SECONDS = 60;

/** The library reads its file again after a second, and Node writes the date of responses once a second. */
const CLOCK_SECONDS = 10;

export interface ServiceOptions {
  /** How reports call it, such as "Plant Store". */
  readonly label: string;
  /** The file of its log. */
  readonly log: string;
  /** Its settings. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether it is started again when it ends by itself, as Docker and systemd do. */
  readonly isSupervised?: boolean;
  /** The path of libfaketime, if its clock will be set. */
  readonly faketime?: string;
  readonly signal: AbortSignal;
}

/**
 * Starts the built service, and waits until it is ready.
 *
 * @param resources gets the service
 * @throws Error when it does not become ready
 */
export async function startServiceProcess(
  options: ServiceOptions,
  resources: AsyncDisposableStack,
): Promise<ServiceProcess> {
  const [port] = (await findFreePorts(1)) as [number];
  const service = new ServiceProcess(port, options);
  resources.defer(() => service.kill());
  if (options.faketime !== undefined) await service.setClock(0);
  await service.start();
  await service.becomesReady();
  return service;
}

/** The built service as a process that is killed, frozen and started again, with a clock of its own. */
export class ServiceProcess {
  private program: RunningProgram | undefined;

  constructor(
    private readonly port: number,
    private readonly options: ServiceOptions,
  ) {}

  get label(): string {
    return this.options.label;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  private get clockFile(): string {
    return `${this.options.log}.clock`;
  }

  async start(): Promise<void> {
    const { env, log, faketime } = this.options;
    const clock = faketime !== undefined && {
      LD_PRELOAD: faketime,
      FAKETIME_TIMESTAMP_FILE: this.clockFile,
      FAKETIME_CACHE_DURATION: '1',
      // Nobody can set the monotonic clock of a machine either.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
    const command = [...NODE, join(ROOT, 'dist/main.js')];
    const program = await startProgram(command, log, {
      env: { ...env, PORT: String(this.port), ...METRICS_SETTING, ...clock },
    });
    this.program = program;
    if (this.options.isSupervised !== true) return;
    void program.ended.then(() => (this.program === program ? this.start() : undefined));
  }

  becomesReady(): Promise<void> {
    const { label, signal } = this.options;
    return waitFor(`The readiness of the ${label}`, READY_SECONDS, signal, () => isReady(this.url));
  }

  async becomesUnready(): Promise<void> {
    const { signal } = this.options;
    const isUnready = async () => !(await isReady(this.url));
    await waitFor('The end of the readiness', READY_SECONDS, signal, isUnready);
  }

  hasEnded(): boolean {
    return this.program?.hasEnded() ?? true;
  }

  async kill(): Promise<void> {
    const { program } = this;
    if (program === undefined) return;
    this.program = undefined;
    program.signal('SIGKILL');
    await program.stop();
    // A killed process leaves the shared memory of libfaketime behind.
    for (const name of ['faketime_shm_', 'sem.faketime_sem_']) {
      await rm(`/dev/shm/${name}${program.pid}`, { force: true });
    }
  }

  freeze(): void {
    this.program?.signal('SIGSTOP');
  }

  thaw(): void {
    this.program?.signal('SIGCONT');
  }

  /** @param seconds by which the clock of the service is ahead of that of the machine */
  async setClock(seconds: number): Promise<void> {
    // Replaced as a whole: the library may read it at any time.
    await writeFile(`${this.clockFile}.new`, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    await rename(`${this.clockFile}.new`, this.clockFile);
    if (this.program === undefined) return;
    await waitFor('The jump of the clock', CLOCK_SECONDS, this.options.signal, async () => {
      const response = await fetchDocumented(`${this.url}/health/live`);
      const ahead = (Date.parse(response.headers.get('date')!) - Date.now()) / 1000;
      return Math.abs(ahead - seconds) < 5;
    });
  }
}
