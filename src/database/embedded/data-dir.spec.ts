import { mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { makeDataDir, openSocketDir } from './data-dir.js';

it('the data folder is made for this user only, whatever the umask', () => {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-test-'));
  const umask = process.umask(0);
  try {
    makeDataDir(join(folder, 'above/data'));
    const modes = ['above', 'above/data'].map((path) => statSync(join(folder, path)).mode & 0o777);
    expect(modes).toEqual([0o700, 0o700]);
  } finally {
    process.umask(umask);
    rmSync(folder, { recursive: true });
  }
});

describe('the folder of the socket', () => {
  let resources: AsyncDisposableStack;

  beforeEach(() => {
    resources = new AsyncDisposableStack();
  });
  afterEach(() => resources.disposeAsync());

  /** A data folder whose socket has a path of this many bytes. */
  function folderFor(bytes: number): string {
    const start = join(tmpdir(), 'é');
    const rest = bytes - Buffer.byteLength(`${start}XXXXXX/postgres/.s.PGSQL.5432`);
    const path = mkdtempSync(start + 'x'.repeat(rest));
    resources.defer(() => rmSync(path, { recursive: true }));
    return path;
  }

  it('is that of the database while the path of the socket has 103 bytes, which all systems accept', () => {
    const dataDir = folderFor(103);
    expect(openSocketDir(dataDir, resources)).toBe(join(dataDir, 'postgres'));
  });

  it('has a shorter name from 104 bytes on, until it is released', async () => {
    const dataDir = folderFor(104);
    const opened = new AsyncDisposableStack();
    const name = dirname(openSocketDir(dataDir, opened));
    expect(name.length).toBeLessThan(30);
    expect(realpathSync(name)).toBe(dataDir);
    await opened.disposeAsync();
    expect(() => realpathSync(name)).toThrow('ENOENT');
  });
});
