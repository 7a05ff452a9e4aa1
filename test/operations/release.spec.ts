import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { ROOT } from '../setup/process/command.js';

it.each([
  ['1.2.1', ['v1.2.0', 'v1.2.1'], '1.2.1 1'],
  // Versions are not in the order of letters.
  ['1.10.0', ['v1.9.0', 'v1.10.0', 'v2.0.0'], '1.10.0 1'],
  ['1.1.5', ['v1.1.5', 'v1.2.0'], '1.1.5'],
  ['1.9.1', ['v1.9.1', 'v1.10.0'], '1.9.1'],
  ['2.0.0', ['v1.9.0', 'v2.0.0', 'v2.1.0-rc.1', 'v10.0.0'], '2.0.0 2'],
])('the image of release %s, with the Git tags %j, gets the tags %s', (version, gitTags, tags) => {
  const script = join(ROOT, '.ci/image-tags');
  const input = gitTags.join('\n');
  expect(execFileSync(script, [version], { input, encoding: 'utf8' })).toBe(`${tags}\n`);
});
