import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

/** The root of the project, where npm and its scripts run: some programs run this file from a build of their own. */
export const ROOT = process.cwd();

const [, flags] = /^exec node (.+) "\$@"$/m.exec(readFileSync(join(ROOT, 'plant-store'), 'utf8'))!;

/** The program that runs a script of the build, with the flags that `./plant-store` gives it. */
export const NODE: readonly [string, ...string[]] = [process.execPath, ...flags!.split(' ')];

const running = new Set<ChildProcess>();

/** Kills the programs that a test which failed has left: Jest would wait for them without an end. */
export function killPrograms(): void {
  for (const child of running) child.kill('SIGKILL');
}

/** Where each process writes which lines it ran, if coverage is measured. */
const COVERAGE = process.env['NODE_V8_COVERAGE'];

/**
 * A command in a process of its own, as an operator runs it, whose output and exit code a test reads. `runInProcess` is faster
 * where the process does not matter.
 */
export interface Command {
  readonly process: ChildProcessByStdio<null, Readable, Readable>;
  /** The output so far. */
  readonly stdout: string;
  readonly stderr: string;
  /** Waits until `pattern` appears on standard output or standard error. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  /** Waits for the end of the process, and returns its exit code. */
  exit(): Promise<number | null>;
}

/**
 * Runs a script of the build.
 *
 * @param args the script in dist/ and its arguments
 * @param cwd the working folder, where a file `.env` is looked for
 */
export function runCommand(
  [script, ...args]: string[],
  env: Record<string, string> = {},
  cwd = ROOT,
): Command {
  const [node, ...nodeFlags] = NODE;
  return runProgram(node, [...nodeFlags, join(ROOT, script!), ...args], env, cwd);
}

/** @returns environment variables with which a command, and each process that it starts, runs a script before its own */
export function runBefore(script: string): Record<string, string> {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` };
}

/**
 * Runs any program.
 *
 * @param cwd the working folder, by default the root of the project
 */
export function runProgram(
  file: string,
  args: string[],
  env: Record<string, string> = {},
  cwd = ROOT,
): Command {
  const child = spawn(file, args, {
    cwd,
    // Not the whole environment of the test, in which DATABASE_URL may be set.
    env: {
      PATH: process.env['PATH'],
      ...(COVERAGE !== undefined && { NODE_V8_COVERAGE: COVERAGE }),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  child.once('close', () => running.delete(child));
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const exited = once(child, 'close') as Promise<[number | null]>;
  return {
    process: child,
    get stdout() {
      return stdout;
    },
    get stderr() {
      return stderr;
    },
    async waitFor(pattern) {
      for (;;) {
        const match = pattern.exec(stdout) ?? pattern.exec(stderr);
        if (match !== null) return match;
        const output = new AbortController();
        const ended = await Promise.race([
          ...[child.stdout, child.stderr].map((stream) =>
            once(stream, 'data', { signal: output.signal }).then(() => false),
          ),
          exited.then(() => true),
        ]);
        output.abort();
        if (ended && !pattern.test(stdout) && !pattern.test(stderr)) {
          throw new Error(
            `The command ended before it wrote ${String(pattern)}: ${stdout}${stderr}`,
          );
        }
      }
    },
    exit: async () => (await exited)[0],
  };
}
