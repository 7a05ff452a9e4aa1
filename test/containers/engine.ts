import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runProgram, type Command } from '../setup/process/command.js';

/** The program of the container engine, which global setup found. */
export const ENGINE = process.env['CONTAINER_ENGINE']!;

export const isPodman = ENGINE === 'podman';

/** The image of the service, which global setup built. */
export const IMAGE = 'plant-store';

/**
 * Runs a command of the engine.
 *
 * @returns its standard output
 * @throws Error with what it wrote, when it fails
 */
export async function engine(...args: string[]): Promise<string> {
  return (await promisify(execFile)(ENGINE, args)).stdout.trim();
}

/** A container of the service, or of one of its commands. */
export interface Container {
  readonly name: string;
  /** What the container writes, and its exit code. */
  readonly output: Command;
  /** Waits until the service listens. */
  url(): Promise<string>;
  /** Runs a command in the container, and returns its standard output. */
  exec(...command: string[]): Promise<string>;
  signal(signal: NodeJS.Signals): Promise<string>;
  remove(): Promise<void>;
}

/**
 * Runs a container in the foreground.
 *
 * @param options of `docker run`
 * @param command instead of the one of the image
 */
export function runContainer(options: string[], command: string[] = [], image = IMAGE): Container {
  const name = `plant-store-test-${randomUUID()}`;
  const args = [
    'run',
    '--name',
    name,
    '--publish',
    '127.0.0.1::3000',
    ...options,
    image,
    ...command,
  ];
  const output = runProgram(ENGINE, args, environment());
  return {
    name,
    output,
    async url() {
      await output.waitFor(/listens on http/);
      const address = (await engine('port', name, '3000')).split('\n')[0]!;
      return `http://${address}`;
    },
    exec: (...command) => engine('exec', name, ...command),
    signal: (signal) => engine('kill', '--signal', signal, name),
    async remove() {
      // Podman would ask it to stop, and wait; Docker kills it.
      const atOnce = isPodman ? ['--time=0'] : [];
      await engine('rm', '--force', ...atOnce, '--volumes', name).catch(() => undefined);
      await output.exit();
    },
  };
}

/** A folder of the machine. Its files may belong to users of containers, and the user of the tests may be an ordinary one. */
export interface Folder {
  readonly path: string;
  readonly remove: () => Promise<void>;
}

/** @param uid its owner; by default the user of the tests */
export async function makeFolder(uid?: number): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'plant-store-test-'));
  const asRoot = async (...command: string[]) => {
    const options = ['--rm', '--user=0:0', `--volume=${path}:/data`];
    await engine('run', ...options, IMAGE, ...command);
  };
  if (uid !== undefined) await asRoot('chown', `${uid}:${uid}`, '/data');
  return {
    path,
    async remove() {
      const script = `find /data -mindepth 1 -delete && chown ${process.getuid!()} /data`;
      await asRoot('sh', '-euc', script);
      await rmdir(path);
    },
  };
}

/** The environment of this process, which names the engine's configuration. */
export function environment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    ),
  );
}

/** The token that a service on the embedded Postgres prints. */
export async function printedToken({ output }: Container): Promise<string> {
  return (await output.waitFor(/Token +(\S+)/))[1]!;
}
