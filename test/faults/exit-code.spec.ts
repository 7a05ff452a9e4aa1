import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { CannotRunError, runToExitCode, type RunContext } from './exit-code.js';
import { requirePackages } from './packages.js';

let out: string;
const resources = useResources();
beforeEach(async () => {
  out = join(await temporaryFolder(resources), 'report.json');
});

/** @returns a run that leaves a log, and where its folder was */
function logged(result: () => boolean): [(s: RunContext) => Promise<boolean>, () => string] {
  let used = '';
  const run = async ({ folder }: RunContext) => {
    used = folder;
    await writeFile(join(folder, 'service.log'), 'what happened');
    return result();
  };
  return [run, () => used];
}

const savedLog = () => readFile(join(out, '../report-logs/service.log'), 'utf8');

describe('the exit code is', () => {
  it('0 for a clean run, of which no log is kept', async () => {
    const [run, folder] = logged(() => true);
    expect(await runToExitCode(out, run)).toBe(0);
    expect(existsSync(folder())).toBe(false);
    await expect(savedLog()).rejects.toThrow('ENOENT');
  });

  it('1 for a run that is not clean, whose logs are saved beside the report', async () => {
    const [run, folder] = logged(() => false);
    expect(await runToExitCode(out, run)).toBe(1);
    expect(existsSync(folder())).toBe(false);
    expect(await savedLog()).toBe('what happened');
  });

  it('1 for a run that fails, with its logs', async () => {
    const [run] = logged(() => {
      throw new Error('The start took more than 90 seconds.');
    });
    expect(await runToExitCode(out, run)).toBe(1);
    expect(await savedLog()).toBe('what happened');
  });

  it('2 when packages are missing', async () => {
    const [run] = logged(() => {
      throw new CannotRunError('install them');
    });
    expect(await runToExitCode(out, run)).toBe(2);
  });
});

it('missing packages are named', () => {
  const paths = { patroni: undefined, haproxy: '/usr/sbin/haproxy', 'etcd-server': undefined };
  const missing =
    process.platform === 'linux' ? 'apt-get install patroni etcd-server' : 'this needs Linux';
  const check = () => requirePackages(paths);
  expect(check).toThrow(CannotRunError);
  expect(check).toThrow(missing);
});
