import { readlinkSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openSocketDir, socketIn } from './socket-dir.js';

describe('the folder of the socket', () => {
  let resources: AsyncDisposableStack;

  beforeEach(() => {
    resources = new AsyncDisposableStack();
  });
  afterEach(() => resources.disposeAsync());

  /** A folder whose socket has a path of this many bytes; the folder need not exist. */
  function folderFor(bytes: number): string {
    const start = '/data/é';
    return start + 'x'.repeat(bytes - Buffer.byteLength(socketIn(start)));
  }

  it('is the data folder while the path of the socket has 103 bytes, which all systems accept', () => {
    expect(openSocketDir(folderFor(103), resources)).toBe(folderFor(103));
  });

  it('is a short link to the data folder from 104 bytes on', () => {
    const dir = openSocketDir(folderFor(104), resources);
    expect(dir).not.toBe(folderFor(104));
    expect(readlinkSync(dir)).toBe(folderFor(104));
  });
});
