import { expect, it } from '@jest/globals';
import { RowCounter } from './row-counter.js';

const CSV = 'id,name,tag\n1,a,\n2,"two\nlines","""\n"\n3,é,""\n';
const NDJSON = '{"id":1,"name":"a \\" b"}\n{"id":2,"name":"c","tag":"\\\\"}\n';

it.each([
  ['CSV', true, CSV, 3],
  ['CSV without a plant', true, 'id,name,tag\n', 0],
  ['NDJSON', false, NDJSON, 2],
  ['NDJSON without a plant', false, '', 0],
])('counts the plants of %s, wherever it is cut', (_format, isCsv, text, count) => {
  const bytes = Buffer.from(text);
  for (let size = 1; size <= bytes.length + 1; size++) {
    const counter = new RowCounter(isCsv);
    for (let at = 0; at < bytes.length; at += size) counter.add(bytes.subarray(at, at + size));
    expect(counter.count).toBe(count);
  }
});
