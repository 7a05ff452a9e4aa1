import { describe, expect, it } from '@jest/globals';
import { serversOf } from './primary-client.js';

describe('serversOf', () => {
  it.each([
    ['one server', 'postgres://u:p@a:6000/plants', ['a:6000']],
    ['the usual port', 'postgres://u:p@a/plants', ['a:5432']],
    ['the usual host', 'postgres:///plants', ['localhost:5432']],
    ['the folder of a socket', 'postgres:///plants?host=/run/postgres', ['/run/postgres:5432']],
    [
      'several servers, in their order',
      'postgres:///plants?host=b,a&port=6001,6000',
      ['b:6001', 'a:6000'],
    ],
    ['several servers without a port', 'postgres://u@a,b/plants', ['a:5432', 'b:5432']],
    [
      'one port for several servers',
      'postgres:///plants?host=a,b,c&port=6000',
      ['a:6000', 'b:6000', 'c:6000'],
    ],
  ])('reads %s', (_what, url, servers) => {
    expect(serversOf(url).map(({ host, port }) => `${host}:${port}`)).toEqual(servers);
  });
});
