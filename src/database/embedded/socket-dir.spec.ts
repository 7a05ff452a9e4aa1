import { readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openSocketDir } from './socket-dir.js';

describe('the folder of the socket', () => {
  let resources: AsyncDisposableStack;

  beforeEach(() => {
    resources = new AsyncDisposableStack();
  });
  afterEach(() => resources.disposeAsync());

  /** A folder whose socket has a path of this many bytes; the folder need not exist. */
  function folderFor(bytes: number): string {
    const start = '/data/é';
    return start + 'x'.repeat(bytes - Buffer.byteLength(join(start, '.s.PGSQL.5432')));
  }

  it('is that of the database while the path of the socket has 103 bytes, which all systems accept', () => {
    expect(openSocketDir(folderFor(103), resources)).toBe(folderFor(103));
  });

  it('is a short link to it from 104 bytes on', () => {
    const dir = openSocketDir(folderFor(104), resources);
    expect(dir).not.toBe(folderFor(104));
    expect(readlinkSync(dir)).toBe(folderFor(104));
  });
});
