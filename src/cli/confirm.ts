import { createInterface } from 'node:readline/promises';
import { CommandError } from './command-error.js';
import type { Streams } from './streams.js';

/** @throws CommandError unless a person at a terminal says yes */
export async function confirm({ stdin, stderr }: Streams, warning: string): Promise<void> {
  if (stdin.isTTY !== true) {
    throw new CommandError(`${warning} Add --yes if that is what you want.`);
  }
  const prompt = createInterface({ input: stdin, output: stderr });
  try {
    const reply = await prompt.question(`${warning} Go on? [y/N] `).catch(() => 'no');
    if (!/^y(es)?$/i.test(reply.trim())) throw new CommandError('Nothing was changed.');
  } finally {
    prompt.close();
  }
}
