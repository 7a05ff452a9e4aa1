import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';

it('the document of the service is openapi.json', async () => {
  // Not loaded with this file, so that a run with mutants knows that this test detects those of the document.
  const { describeApp } = await import('./app.js');
  const document = JSON.parse(JSON.stringify(await describeApp())) as object;
  expect(document).toEqual(JSON.parse(readFileSync('openapi.json', 'utf8')));
});
