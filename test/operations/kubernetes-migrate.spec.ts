import { readFileSync } from 'node:fs';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { ROOT, runProgram, type Command } from '../setup/process/command.js';

const read = (file: string): unknown => parse(readFileSync(join(ROOT, file), 'utf8'));

describe('deploy/kubernetes/migrate', () => {
  const { metadata, spec } = read('deploy/kubernetes/migration/job.yaml') as {
    metadata: { name: string };
    spec: { activeDeadlineSeconds: number };
  };
  const { namespace } = read('deploy/kubernetes/kustomization.yaml') as { namespace: string };
  let dir: string;

  const resources = useResources();
  beforeEach(async () => {
    dir = await temporaryFolder(resources);
  });

  /** A program that records its arguments, and then runs these lines. */
  async function fake(name: string, lines: string): Promise<void> {
    const file = join(dir, name);
    await writeFile(file, `#!/bin/sh\necho "${name} $*" >> '${dir}/calls'\n${lines}\n`);
    await chmod(file, 0o755);
  }

  type Condition = Readonly<Record<'type' | 'status' | 'message', string>>;
  const condition = (type: string, message = '', status = 'True') => ({ type, status, message });

  /** The lines of shell that respond to each question about a job with these conditions, as kubectl does. */
  function job(...conditions: Condition[]): string {
    const members = ['type', 'status', 'message'] as const;
    const responses = conditions.flatMap((asked) =>
      members.flatMap((filter) =>
        members.map((member) => {
          const found = conditions.filter((it) => it[filter] === asked[filter]);
          const path = `{.status.conditions[?(@.${filter}=="${asked[filter]}")].${member}}`;
          return `*'-o jsonpath=${path}') echo '${found.map((it) => it[member]).join(' ')}' ;;`;
        }),
      ),
    );
    return `case "$*" in ${responses.join('\n')} esac`;
  }

  /**
   * @param state the lines of shell that respond to each question about the job
   * @param log those that respond to a question about its log
   * @param changes those that change the job
   */
  async function migrate(
    state: string,
    log = `echo 'the log'`,
    changes: Readonly<Partial<Record<'delete' | 'apply', string>>> = {},
  ): Promise<{ command: Command; calls: string[] }> {
    await fake('sleep', '');
    await fake(
      'kubectl',
      `case "$*" in
        '-n ${namespace} get job ${metadata.name} '*) ${state} ;;
        '-n ${namespace} logs job/${metadata.name}') ${log} ;;
        *' delete '*) ${changes.delete ?? ':'} ;;
        apply*) ${changes.apply ?? 'test -f migration/kustomization.yaml'} ;;
        *) exit 1 ;;
      esac`,
    );
    const command = runProgram(join(ROOT, 'deploy/kubernetes/migrate'), [], {
      PATH: `${dir}:${process.env['PATH']}`,
    });
    await command.exit();
    return { command, calls: (await readFile(join(dir, 'calls'), 'utf8')).trim().split('\n') };
  }

  const COMPLETE = job(
    condition('Suspended', 'Job resumed', 'False'),
    condition('SuccessCriteriaMet'),
    condition('Complete'),
  );
  const FAILED = job(
    condition('FailureTarget', 'the first reason'),
    condition('Failed', 'the reason'),
  );

  it('deletes the job of the release before, applies its own, and succeeds when that has completed', async () => {
    const { command, calls } = await migrate(COMPLETE);
    expect(calls).toEqual([
      `kubectl -n ${namespace} delete job ${metadata.name} --ignore-not-found`,
      'kubectl apply -k migration',
      expect.stringMatching(`^kubectl -n ${namespace} get job ${metadata.name} `),
    ]);
    expect(await command.exit()).toBe(0);
  });

  it('ends with 1, the log and the reason when the job has failed', async () => {
    const { command } = await migrate(FAILED);
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toBe('the log\nThe migration has failed: the reason\n');
  });

  it('ends with 1 and the reason when the job has failed and its log is gone', async () => {
    const { command } = await migrate(FAILED, `echo 'no pods' >&2; exit 1`);
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toBe('no pods\nThe migration has failed: the reason\n');
  });

  it.each(['delete', 'apply'])(
    'ends with the exit code of kubectl and its reason when it cannot %s the job',
    async (change) => {
      const { command, calls } = await migrate(COMPLETE, '', {
        [change]: `echo 'not allowed' >&2; exit 3`,
      });
      expect(await command.exit()).toBe(3);
      expect(command.stderr).toBe('not allowed\n');
      expect(calls.at(-1)).toContain(change);
    },
  );

  it('asks again when the job has not ended, or a question fails', async () => {
    const responses = `case $(grep -c 'get job' '${dir}/calls') in
      1) ${job(condition('FailureTarget'))} ;; 2) exit 1 ;; *) ${COMPLETE} ;; esac`;
    const { command, calls } = await migrate(responses);
    expect(calls.filter((call) => call.startsWith('sleep'))).toHaveLength(2);
    expect(await command.exit()).toBe(0);
  });

  it('gives up with 2, and not before the job has reached its own deadline', async () => {
    const { command, calls } = await migrate(job());
    expect(await command.exit()).toBe(2);
    const seconds = calls.map((call) => Number(/^sleep (\d+)$/.exec(call)?.[1] ?? 0));
    expect(seconds.reduce((sum, it) => sum + it)).toBeGreaterThan(spec.activeDeadlineSeconds);
  });
});
