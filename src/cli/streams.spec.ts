import { PassThrough } from 'node:stream';
import { expect, it } from '@jest/globals';
import { confirm } from './streams.js';

it('stops reading a terminal after the answer, so that the command can end', async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stdout = Object.assign(new PassThrough(), { fd: 1 });
  const confirmed = confirm({ stdin, stdout, stderr: new PassThrough() }, 'This is for good.');
  // A terminal stays open after a line.
  stdin.write('y\n');
  await confirmed;
  expect(stdin.isPaused()).toBe(true);
});
