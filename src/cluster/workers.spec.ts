import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { createServer } from 'node:http';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import { holdTime } from '../../test/setup/time/held-timers.js';
import { importWithWaits } from '../../test/setup/time/held-waits.js';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { chainsSettled, settled, untilSettled } from '../../test/setup/time/settled.js';
import { readConfig } from '../config/config.js';
import type { ToPrimary } from './messages.js';

const resources = useResources();

/** A process whose messages and end come from the test. */
class Child extends EventEmitter {
  readonly send = jest.fn();
  readonly kill = jest.fn();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();

  report(message: ToPrimary): void {
    this.emit('message', message);
  }

  end(code: number | null, signal: string | null = null): void {
    this.emit('close', code, signal);
  }
}

let children: Child[];
let createOnce: (() => Child) | undefined;

jest.unstable_mockModule('node:child_process', () => ({
  fork: (): ChildProcess => {
    const create = createOnce ?? (() => new Child());
    createOnce = undefined;
    const child = create();
    children.push(child);
    return child as unknown as ChildProcess;
  },
}));

const { Workers } = await importWithWaits(() => import('./workers.js'));

const DELAY_MS = 3000;
const TIMEOUT_MS = 7000;
const STOP_GRACE_MS = 5000;
const STABLE_MS = 60_000;
const ADDRESS = 'http://127.0.0.1:1';

describe('the primary of two workers', () => {
  let workers: InstanceType<typeof Workers>;
  let entries: string[];
  let exitListeners: NodeJS.ExitListener[];

  beforeEach(() => {
    holdTime();
    children = [];
    entries = [];
    exitListeners = process.listeners('exit');
    workers = workersWith({ PORT: '0' });
  });
  afterEach(() => {
    jest.useRealTimers();
    for (const listener of process.listeners('exit')) {
      if (!exitListeners.includes(listener)) process.off('exit', listener);
    }
  });

  function workersWith(settings: Record<string, string>): InstanceType<typeof Workers> {
    const config = readConfig({
      WEB_CONCURRENCY: '2',
      SHUTDOWN_DELAY_MS: String(DELAY_MS),
      SHUTDOWN_TIMEOUT_MS: String(TIMEOUT_MS),
      ...settings,
    });
    const write = (line: string) => void entries.push((JSON.parse(line) as { msg: string }).msg);
    return new Workers(
      { ...config, database: { ...config.database, url: '' } },
      pino({}, { write }),
    );
  }

  /** @returns what the primary sends to a worker that asks for the metrics of all */
  async function scrape(worker: Child): Promise<string> {
    const sent = worker.send.mock.calls.length;
    worker.report({ type: 'scrape' });
    await untilSettled(() => worker.send.mock.calls.length > sent);
    const [message] = worker.send.mock.lastCall as [{ type: string; text: string }];
    expect(message.type).toBe('metrics');
    return message.text;
  }

  /** Waits, in turns of the event loop, for the worker of this number. */
  async function child(worker: number): Promise<Child> {
    await untilSettled(() => children.length >= worker);
    return children[worker - 1]!;
  }

  /** Lets the process of this number listen. */
  async function listen(worker: number): Promise<void> {
    (await child(worker)).report({ type: 'listening', url: ADDRESS });
  }

  /** Starts the workers, which listen at once. */
  async function start(): Promise<[Child, Child]> {
    const started = workers.start();
    for (const worker of [1, 2]) await listen(worker);
    expect(await started).toBe(ADDRESS);
    return [children[0]!, children[1]!];
  }

  it('fails to start with the reason that the first worker sent', async () => {
    const started = workers.start();
    const first = await child(1);
    first.report({ type: 'failed', reason: 'The reason.' });
    first.end(1);
    await expect(started).rejects.toThrow(/^The reason\.$/);
    expect(children).toHaveLength(1);
  });

  it('starts no worker if another program took the address while the service waited for the database', async () => {
    const { port } = await openServer(resources, createServer());
    const late = workersWith({ PORT: String(port) });
    await expect(late.start()).rejects.toMatchObject({ code: 'EADDRINUSE', port });
    expect(children).toEqual([]);
  });

  it('has started when both workers listen', async () => {
    let hasStarted = false;
    void workers.start().then(() => (hasStarted = true));
    await child(1);
    await chainsSettled();
    // An error that all workers would meet is reported by the first one alone.
    expect(children).toHaveLength(1);
    await listen(1);
    await child(2);
    await chainsSettled();
    expect(hasStarted).toBe(false);
    await listen(2);
    await chainsSettled();
    expect(hasStarted).toBe(true);
  });

  it('starts, too, when the second worker ends before it listens and its replacement listens', async () => {
    const started = workers.start();
    await listen(1);
    (await child(2)).end(1);
    await Promise.race([started, chainsSettled()]);
    expect(entries).toEqual(['Worker 2 ended (exit code 1); it is replaced in 100 ms.']);
    jest.advanceTimersByTime(100);
    await listen(3);
    expect(await started).toBe(ADDRESS);
    expect(await scrape(children[0]!)).toMatch(/^plant_store_worker_restarts_total 1$/m);
  });

  it.each([
    [
      'says so later, and has no channel to it and no output of it',
      'exit code -24',
      () => {
        const child = new Child();
        setImmediate(() => {
          child.emit('error', new Error('spawn EMFILE'));
          child.end(-24);
        });
        const missing = { send: undefined, stdout: undefined, stderr: undefined };
        return Object.assign(child, missing);
      },
    ],
    [
      'throws',
      'not created',
      () => {
        throw new Error('spawn ENOMEM');
      },
    ],
  ])('replaces a worker when Node cannot create its process and %s', async (_, ending, fails) => {
    const [, second] = await start();
    second.end(1);
    await chainsSettled();
    createOnce = fails;
    jest.advanceTimersByTime(100);
    await chainsSettled();
    expect(entries[1]).toMatch(
      new RegExp(`^Worker 2 ended \\(${ending}\\): spawn E.+; it is replaced in 200 ms\\.$`),
    );
    jest.advanceTimersByTime(200);
    await listen(children.length + 1);
    expect(entries.slice(2)).toEqual(['Worker 2 listens again.']);
  });

  it('waits longer before each replacement of a worker that ends at once, also after the first minute', async () => {
    const [, second] = await start();
    jest.advanceTimersByTime(STABLE_MS);
    second.end(1);
    for (const [end, wait] of [100, 200, 400].entries()) {
      await chainsSettled();
      expect(entries[end]).toBe(`Worker 2 ended (exit code 1); it is replaced in ${wait} ms.`);
      jest.advanceTimersByTime(wait);
      (await child(end + 3)).end(1);
    }
  });

  it('writes to standard error what a worker writes besides its log, and drops it while nobody reads that', async () => {
    const [first] = await start();
    const write = jest.spyOn(process.stderr, 'write').mockReturnValue(false);
    const setFull = (value: boolean) =>
      Object.defineProperty(process.stderr, 'writableNeedDrain', { value, configurable: true });
    setFull(false);
    try {
      first.stdout.write('printed');
      first.stderr.write('a stack');
      await settled();
      setFull(true);
      first.stderr.write('late');
      await settled();
      expect(write.mock.calls.map(([text]) => String(text))).toEqual(['printed', 'a stack']);
    } finally {
      Reflect.deleteProperty(process.stderr, 'writableNeedDrain');
      write.mockRestore();
    }
  });

  it('adds its own metrics to those of the workers', async () => {
    const [first] = await start();
    const metrics = await scrape(first);
    expect(metrics).toMatch(/^process_resident_memory_bytes \d+$/m);
    expect(metrics).toMatch(/^nodejs_heap_size_used_bytes \d+$/m);
  });

  it('kills workers that run five seconds after all timeouts of the stop', async () => {
    const [first, second] = await start();
    const stopped = workers.stop();
    expect(first.send).toHaveBeenLastCalledWith({ type: 'stop' }, expect.anything());
    first.end(0);
    await settled();
    jest.advanceTimersByTime(DELAY_MS + TIMEOUT_MS + STOP_GRACE_MS - 1);
    expect(second.kill).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(second.kill).toHaveBeenCalledWith('SIGKILL');
    expect(first.kill).not.toHaveBeenCalled();
    second.end(null, 'SIGKILL');
    await stopped;
  });

  it('ends at the stop also while a replacement waits', async () => {
    const [first, second] = await start();
    first.end(1);
    await untilSettled(() => entries.length > 0);
    expect(entries).toEqual(['Worker 1 ended (exit code 1); it is replaced in 100 ms.']);
    let hasEnded = false;
    void workers.stop().then(() => (hasEnded = true));
    second.end(0);
    await chainsSettled();
    expect(hasEnded).toBe(true);
    expect(children).toHaveLength(2);
  });
});
