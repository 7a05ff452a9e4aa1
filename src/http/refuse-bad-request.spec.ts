import { IncomingMessage, ServerResponse, type IncomingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from '@jest/globals';
import { ServiceError } from '../errors/service-error.js';
import { refuseBadRequest } from './refuse-bad-request.js';

function refusalOf(httpVersion: string, headers: IncomingHttpHeaders): ServiceError | undefined {
  const request = Object.assign(new IncomingMessage(new Socket()), { httpVersion, headers });
  const calls: (ServiceError | undefined)[] = [];
  refuseBadRequest(request, new ServerResponse(request), (error) => calls.push(error));
  expect(calls).toHaveLength(1);
  return calls[0];
}

it.each<[string, IncomingHttpHeaders]>([
  ['1.1', { host: 'a' }],
  ['1.1', { host: '' }],
  ['1.0', {}],
  ['1.1', { host: 'a', expect: '100-continue' }],
  ['1.1', { host: 'a', expect: '100-Continue' }],
  ['1.0', { expect: 'tea' }],
  ['1.1', { host: 'a', 'transfer-encoding': 'chunked' }],
  ['1.1', { host: 'a', 'transfer-encoding': 'CHUNKED' }],
])('HTTP/%s with %j is accepted', (version, headers) => {
  expect(refusalOf(version, headers)).toBeUndefined();
});

it.each<[string, IncomingHttpHeaders, number, RegExp]>([
  ['1.1', {}, 40000, /Host/],
  ['1.1', { host: 'a', expect: 'tea' }, 41700, /Expect: 100-continue/],
  ['1.1', { host: 'a', expect: '' }, 41700, /Expect: 100-continue/],
  ['1.1', { host: 'a', expect: '100-continue, tea' }, 41700, /Expect: 100-continue/],
  ['1.1', { host: 'a', 'transfer-encoding': 'gzip' }, 40000, /Transfer-Encoding: chunked/],
  ['1.1', { host: 'a', 'transfer-encoding': 'gzip, chunked' }, 40000, /send it plain/],
  ['1.1', { host: 'a', 'transfer-encoding': 'chunked, chunked' }, 40000, /send it plain/],
  ['1.1', { host: 'a', 'transfer-encoding': '' }, 40000, /send it plain/],
  ['1.0', { 'transfer-encoding': 'gzip' }, 40000, /send it plain/],
])('HTTP/%s with %j is %d, with the remedy', (version, headers, code, remedy) => {
  expect(refusalOf(version, headers)).toMatchObject({
    code,
    message: expect.stringMatching(remedy),
  });
});
