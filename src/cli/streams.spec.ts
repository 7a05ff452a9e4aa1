import { PassThrough } from 'node:stream';
import { expect, it } from '@jest/globals';
import { CommandError } from './command-error.js';
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

it.each([
  ['where standard error is a terminal, too', true],
  ['where standard error is a file', false],
])('takes Ctrl+D for a no %s', async (_where, isTTY) => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stdout = Object.assign(new PassThrough(), { fd: 1 });
  const stderr = Object.assign(new PassThrough(), { isTTY });
  const confirmed = confirm({ stdin, stdout, stderr }, 'This is for good.');
  // Node gets the key from a terminal in raw mode, and the end of the input from any other.
  if (isTTY) stdin.write('\u0004');
  else stdin.end();
  await expect(confirmed).rejects.toThrow(new CommandError('Nothing was changed.'));
});
