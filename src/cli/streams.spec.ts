import { PassThrough } from 'node:stream';
import { expect, it } from '@jest/globals';
import { CommandError } from './command-error.js';
import { confirm } from './streams.js';

/** A terminal on which a person replies. */
function reply(text: string) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stdout = Object.assign(new PassThrough(), { fd: 1 });
  const stderr = new PassThrough();
  const confirmed = confirm({ stdin, stdout, stderr }, 'This is for good.');
  // A terminal stays open after a line.
  stdin.write(`${text}\n`);
  return { stdin, stderr, confirmed };
}

it.each(['y', 'Y', 'yes', ' YES '])('takes "%s" for a yes', async (text) => {
  await expect(reply(text).confirmed).resolves.toBeUndefined();
});

it.each(['', 'n', 'ye', 'okay', 'yesterday'])('takes "%s" for a no', async (text) => {
  await expect(reply(text).confirmed).rejects.toThrow(new CommandError('Nothing was changed.'));
});

it('asks on standard error, with the warning', async () => {
  const { stderr, confirmed } = reply('y');
  await confirmed;
  expect(String(stderr.read())).toContain('This is for good. Go on? [y/N] ');
});

it('asks nobody where no person can reply', async () => {
  const stdout = Object.assign(new PassThrough(), { fd: 1 });
  const streams = { stdin: new PassThrough(), stdout, stderr: new PassThrough() };
  await expect(confirm(streams, 'This is for good.')).rejects.toThrow(
    new CommandError('This is for good. Add --yes if that is what you want.'),
  );
});

it('stops reading a terminal after the reply, so that the command can end', async () => {
  const { stdin, confirmed } = reply('y');
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
