import { IncomingMessage, ServerResponse, type IncomingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import type { ServiceError } from '../errors/service-error.js';
import { refuseBadRequest } from './refuse-bad-request.js';

function refusalOf(headers: IncomingHttpHeaders, version = '1.1'): ServiceError | undefined {
  const request = new IncomingMessage(new Socket());
  const [major, minor] = version.split('.').map(Number);
  Object.assign(request, {
    httpVersion: version,
    httpVersionMajor: major,
    httpVersionMinor: minor,
    headers,
  });
  const calls: (ServiceError | undefined)[] = [];
  refuseBadRequest(request, new ServerResponse(request), (error) => calls.push(error));
  expect(calls).toHaveLength(1);
  return calls[0];
}

describe('the Host header', () => {
  const WRONG_HOST = { code: 40000, message: 'The Host header is missing or not valid.' };

  it.each([
    'a',
    'plants.example',
    'PLANTS.Example:80',
    'a:',
    'a:80',
    'a:65535',
    '',
    ':80',
    '127.0.0.1:3000',
    '[::1]',
    '[2001:DB8::F]:3000',
    '[::ffff:192.0.2.1]:3000',
    'xn--e1afmkfd.example',
    "a_b~!$&'()*+;=%-",
  ])('%j is accepted', (host) => {
    expect(refusalOf({ host })).toBeUndefined();
  });

  it.each([
    ['a, b', 'is two hosts'],
    ['a b', 'has a space'],
    ['a:80 b', 'has a second host after the port'],
    ['a/c', 'has a path'],
    ['user@a', 'has a user'],
    ['@a', 'has an empty user'],
    ['a:b', 'has a port that is no number'],
    ['a:8b', 'has a port that ends with a letter'],
    ['a:80:80', 'has two ports'],
    ['::1', 'is an IPv6 address without brackets'],
    ['[]', 'is an empty address'],
    ['[::1', 'has a bracket that does not end'],
    ['[::g]', 'has a letter that no IPv6 address has'],
    ['[::1]a', 'has text after the address'],
    ['a[::1]', 'has text before the address'],
    ['[::1]:a', 'has a port that is no number'],
  ])('%j is 40000, because it %s', (host, _reason) => {
    expect(refusalOf({ host })).toMatchObject(WRONG_HOST);
  });

  it('may be absent in HTTP/1.0, but not in HTTP/1.1', () => {
    expect(refusalOf({}, '1.0')).toBeUndefined();
    expect(refusalOf({}, '1.1')).toMatchObject(WRONG_HOST);
  });

  it('must be valid in HTTP/1.0, too', () => {
    expect(refusalOf({ host: 'a b' }, '1.0')).toMatchObject(WRONG_HOST);
  });
});

it.each(['0.9', '2.0'])('HTTP/%s is 40000', (version) => {
  expect(refusalOf({ host: 'a' }, version)).toMatchObject({
    code: 40000,
    message: 'The service speaks HTTP/1.1.',
  });
});

describe('the transfer coding', () => {
  it.each(['chunked', 'Chunked', 'CHUNKED'])('%s is accepted', (coding) => {
    expect(refusalOf({ host: 'a', 'transfer-encoding': coding })).toBeUndefined();
  });

  it.each(['gzip', 'gzip, chunked', 'chunked, chunked', 'identity', 'x', ''])(
    '%j is 40000, with the remedy',
    (coding) => {
      expect(refusalOf({ host: 'a', 'transfer-encoding': coding })).toMatchObject({
        code: 40000,
        message: expect.stringContaining('send it plain, or with Transfer-Encoding: chunked.'),
      });
    },
  );
});
