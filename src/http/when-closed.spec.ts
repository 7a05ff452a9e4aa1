import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, it } from '@jest/globals';
import { whenClosed } from './when-closed.js';

it('a resource is released when its stream closes, or at once if it is closed already', async () => {
  const stream = new PassThrough();
  const released: string[] = [];
  whenClosed(stream, () => released.push('open'));
  expect(released).toEqual([]);
  stream.destroy();
  await once(stream, 'close');
  expect(released).toEqual(['open']);
  whenClosed(stream, () => released.push('closed'));
  expect(released).toEqual(['open', 'closed']);
});
