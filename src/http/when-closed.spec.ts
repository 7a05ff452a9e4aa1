import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, it } from '@jest/globals';
import { whenClosed } from './when-closed.js';

it('a resource is released when the stream closes, and not before', async () => {
  const stream = new PassThrough();
  let released = 0;
  whenClosed(stream, () => released++);
  expect(released).toBe(0);
  stream.destroy();
  await once(stream, 'close');
  expect(released).toBe(1);
});

it('a resource of a stream that has closed already is released at once', async () => {
  const stream = new PassThrough().destroy();
  await once(stream, 'close');
  let released = 0;
  whenClosed(stream, () => released++);
  expect(released).toBe(1);
  expect(stream.listenerCount('close')).toBe(0);
});
