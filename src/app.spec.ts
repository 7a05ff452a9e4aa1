import { readFileSync } from 'node:fs';
import { expect, it, jest } from '@jest/globals';

it.each<[string, NodeJS.ProcessEnv]>([
  ['', {}],
  [', also where settings say otherwise', { HOST: '0.0.0.0', PORT: '4000' }],
])('the document of the service is openapi.json%s', async (_where, settings) => {
  // Not loaded with this file, so that a run with mutants knows that this test detects those of the document.
  const { describeApp } = await import('./app.js');
  const env = jest.replaceProperty(process, 'env', { ...process.env, ...settings });
  const document = JSON.parse(JSON.stringify(await describeApp())) as object;
  env.restore();
  expect(document).toEqual(JSON.parse(readFileSync('openapi.json', 'utf8')));
});
