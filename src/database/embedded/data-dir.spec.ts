import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { StartError } from '../../errors/start-error.js';
import { makeDataDir, openSocketDir } from './data-dir.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plant-store-test-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const modeOf = (path: string) => statSync(path).mode & 0o7777;

function addCluster(): void {
  mkdirSync(join(folder, 'postgres'));
  writeFileSync(join(folder, 'postgres/PG_VERSION'), '18\n');
}

/** Only root can give folders to other users. */
const itAsRoot = process.geteuid!() === 0 ? it : it.skip;

describe('the data folder', () => {
  it('is made for this user only, with the folders above it, whatever the umask', () => {
    const umask = process.umask(0);
    try {
      makeDataDir(join(folder, 'above/data'));
    } finally {
      process.umask(umask);
    }
    const made = ['above', 'above/data'].map((path) => modeOf(join(folder, path)));
    expect(made).toEqual([0o700, 0o700]);
  });

  it.each([
    ['is empty', () => undefined],
    ['is a new disk', () => mkdirSync(join(folder, 'lost+found'))],
    ['has a database', addCluster],
  ])('is closed to other users if it is open and %s', (_content, fill) => {
    fill();
    chmodSync(folder, 0o755);
    makeDataDir(folder);
    expect(modeOf(folder)).toBe(0o700);
  });

  it.each([
    ['another folder', 'theirs'],
    ['a folder postgres that is not a database', 'postgres'],
  ])('is refused, and not changed, if it is open and has %s', (_content, name) => {
    mkdirSync(join(folder, name));
    chmodSync(folder, 0o755);
    expect(() => makeDataDir(folder)).toThrow(
      new StartError(
        `${folder} is open to other users, and has other files than a database. Set DATA_DIR to a folder of your own; if it is one, close it: chmod 700 ${folder}`,
      ),
    );
    expect(modeOf(folder)).toBe(0o755);
  });

  itAsRoot('stays open if it is a volume, to the users of its containers', () => {
    chmodSync(folder, 0o1777);
    makeDataDir(folder);
    expect(modeOf(folder)).toBe(0o1777);
  });

  itAsRoot('is refused if it belongs to another user', () => {
    chownSync(folder, 12_345, 12_345);
    expect(() => makeDataDir(folder)).toThrow(
      `${folder} belongs to another user (uid 12345). Start as that user, or stop its service and give it to yours (chown -R 0 ${folder}), or set DATA_DIR to a folder of your own.`,
    );
  });

  it('does not get an empty database in the place of one that is missing', () => {
    const token = join(folder, 'development-token');
    writeFileSync(token, '');
    expect(() => makeDataDir(folder)).toThrow(
      `${join(folder, 'postgres')} is missing, and ${token} shows that there was a database.`,
    );
    expect(readdirSync(folder)).toEqual(['development-token']);
  });

  it.each([
    ['/dev/null/data', 'a file in its path is not a folder'],
    ['/dev/null', 'it is not a folder'],
    ...(process.platform === 'linux' ? [['/proc/plants', 'there is no such file or folder']] : []),
  ])('%s cannot be made: the message says why', (path, reason) => {
    expect(() => makeDataDir(path)).toThrow(
      `${path} cannot be used: ${reason}. Set DATA_DIR to a folder of your own.`,
    );
  });
});

describe('the folder of the socket', () => {
  /** Makes a data folder whose socket has a path of this many bytes. */
  function folderFor(bytes: number): string {
    const start = join(folder, 'é');
    const rest = bytes - Buffer.byteLength(`${start}/postgres/.s.PGSQL.5432`);
    const path = start + 'x'.repeat(rest);
    mkdirSync(path);
    return path;
  }

  it('is that of the database while the path of the socket has 103 bytes, which all systems accept', async () => {
    await using resources = new AsyncDisposableStack();
    const dataDir = folderFor(103);
    expect(openSocketDir(dataDir, resources)).toBe(join(dataDir, 'postgres'));
  });

  it('has a shorter name from 104 bytes on, until it is released', async () => {
    const dataDir = folderFor(104);
    const resources = new AsyncDisposableStack();
    const name = dirname(openSocketDir(dataDir, resources));
    expect(name.length).toBeLessThan(30);
    expect(realpathSync(name)).toBe(dataDir);
    await resources.disposeAsync();
    expect(() => realpathSync(name)).toThrow('ENOENT');
  });
});
