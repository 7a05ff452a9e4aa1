import { readFileSync } from 'node:fs';
import { expect, it, jest } from '@jest/globals';
import { describeApp } from './app.js';

// The mutation run needs it: no other unit test loads what the document is made of.
it('the document of the service is openapi.json, also where settings say otherwise', async () => {
  const settings = { HOST: '0.0.0.0', PORT: '4000' };
  const env = jest.replaceProperty(process, 'env', { ...process.env, ...settings });
  const document = JSON.parse(JSON.stringify(await describeApp())) as object;
  env.restore();
  expect(document).toEqual(JSON.parse(readFileSync('openapi.json', 'utf8')));
});
