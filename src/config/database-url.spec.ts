import { describe, expect, it, jest } from '@jest/globals';
import { parse } from 'pg-connection-string';
import { ConfigError } from './config-error.js';
import { readConfig } from './config.js';

/** DATABASE_URL as pg reads it. */
const read = (url: string) => parse(readConfig({ DATABASE_URL: url }).database.url!);

describe('DATABASE_URL', () => {
  it.each<[string, Record<string, unknown>]>([
    ['postgres://me:pass@db:65535/plants', { user: 'me', password: 'pass', port: '65535' }],
    ['POSTGRESQL://db', { host: 'db', database: null }],
    ['postgres:///plants', { host: '', database: 'plants' }],
    [' postgres://me@h/plants\n', { host: 'h', user: 'me' }],
    ['postgres://me@/plants?host=/run/my postgres', { host: '/run/my postgres', user: 'me' }],
    ['postgres://me:pass@%2Frun%2Fpostgres/plants', { host: '/run/postgres' }],
    ['postgres://me:pass@[::1]:5432/plants', { host: '::1', port: '5432' }],
    ['postgres://db/plants?options=-c%20search_path%3Dx', { options: '-c search_path=x' }],
    ['postgres://db/plants?user=me&password=a/b?c:d&port=1', { password: 'a/b?c:d', port: '1' }],
    ['postgres://me:hun%2Fter%23%3F%40%3A%25@db/plants', { password: 'hun/ter#?@:%', host: 'db' }],
    ['postgres://me:hun%2Fter2@db/plants?options=-c a=b', { password: 'hun/ter2' }],
    // Not ambiguous: a host has no second colon.
    ['postgres://me:hun:ter2@db/plants', { password: 'hun:ter2', host: 'db' }],
    // Parameters of other programs.
    ['postgres://db/plants?pgbouncer=true&sslcrl=/a&sslmode=disable', { ssl: false }],
  ])('pg reads %s correctly', (url, expected) => {
    expect(read(url)).toMatchObject(expected);
  });

  it.each([
    'postgres://me:pa,ss@h1,h2:5433/plants',
    'postgres://h1:5432,h2:5433/plants',
    'postgres:///plants?host=h1,h2&port=5432,5433',
  ])('%s is refused: it names several hosts', (url) => {
    expect(() => read(url)).toThrow(
      new ConfigError(
        'DATABASE_URL must name one host. It must lead to the primary: the server itself, or HAProxy, PgBouncer or another endpoint in front of several',
      ),
    );
  });

  it.each([
    ['currentSchema=garden', 'has the parameter currentSchema, which has no effect: write ?op'],
    ['search_path=garden', 'has the parameter search_path, which has no effect: write ?op'],
    ['useSSL=true', 'has the parameter useSSL, which has no effect: write sslmode=verify-full'],
    ['ssl=require', 'must have sslmode instead of ssl: sslmode=verify-full for TLS'],
    ['sslMode=verify-full', 'has a parameter that is nearly sslmode, and has no effect: write'],
    ['a=b&ssl_mode=verify-full', 'has a parameter that is nearly sslmode, and has no effect'],
    ['sslrootcrt=/ca.crt', 'has a parameter that is nearly sslrootcert, and has no effect'],
    ['sslmode=requir', 'must have one of these values of sslmode: disable, allow, prefer, req'],
    ['sslmode=', 'must have one of these values of sslmode: disable, allow, prefer, require, '],
    ['sslmode=disable&sslmode=require', 'must have each parameter once'],
    ['uselibpqcompat=true&sslmode=verify-ca', 'must have sslrootcert=FILE for sslmode=verify-ca'],
    ['sslrootcert=/zyx', 'names a file in sslrootcert, sslcert or sslkey that cannot be read: th'],
  ])('%s, which pg would ignore or take for something else, is refused', (query, message) => {
    const text = messageOf(`postgres://me:hunter2@db/plants?${query}`);
    expect(text).toContain(`DATABASE_URL ${message}`);
    expect(text).not.toMatch(/hunter2|zyx/);
  });

  it('with quotes around it is refused in words', () => {
    expect(() => read('"postgres://db/plants"')).toThrow(
      'DATABASE_URL has quotes around it, which would be a part of it: leave them out',
    );
  });

  it.each([
    // A password looks like the end of the host, and its rest like the database or the parameters.
    ['zyx/wvu', 'postgres://me:PASSWORD@db:5432/plants'],
    ['5432/wvuts', 'postgres://me:PASSWORD@db'],
    ['/zyxwvu', 'postgresql://:PASSWORD@/plants?host=/run/postgres'],
    ['5432?host=wvu&port=987', 'postgres://me:PASSWORD@[::1]/plants?sslmode=require'],
    // It looks like the end of the address.
    ['zyx#wvu', 'postgres://me:PASSWORD@db'],
    ['5432/zyx#wvu', 'postgres://me:PASSWORD@db'],
    // It looks like the host.
    ['zyx@wvu', 'postgres://me:PASSWORD@db'],
    ['zyx@5432/wvu@tsr', 'postgres://me:PASSWORD@db/plants'],
    // It looks like an escaped character.
    ['zyx%ZZwvu', 'postgres://me:PASSWORD@db/plants'],
    ['zyxwvu%', 'postgres://me:PASSWORD@db/plants'],
    ['zyx%FFwvu', 'postgres://me:PASSWORD@db/plants'],
    // It is a parameter, in which / and ? need not be escaped.
    ['zyx#wvu', 'postgres://db/plants?user=me&password=PASSWORD'],
    ['zyx@wvu', 'postgres://db/plants?user=me&password=PASSWORD'],
    ['zyx%ZZwvu', 'postgres://db/plants?user=me&password=PASSWORD'],
  ])('with the password %s unescaped, %s is refused', (password, url) => {
    const message = messageOf(url.replace('PASSWORD', password));
    expect(message).toMatch(
      /^DATABASE_URL must have special characters .* escaped: \/ as %2F, # as %23, \? as %3F, @ as %40, : as %3A, % as %25$/,
    );
    expectNothingOf(password, message);
  });

  it.each([
    'mysql://me:zyxwvu@db/plants',
    'postgres://me:zyxwvu',
    'postgres://me:zyxwvu@db:port/plants',
    'postgres://me:zyxwvu@db:65536/plants',
    'postgres://me@db/plants?port=zyxwvu',
    'postgres:/me:zyxwvu@db/plants',
    'host=db password=zyxwvu',
  ])('%s is no address', (url) => {
    const message = messageOf(url);
    expect(message).toMatch(/^DATABASE_URL must be an address such as postgres:\/\//);
    expectNothingOf('zyxwvu', message);
  });

  it.each<[string, unknown]>([
    ['ssl=true', true],
    ['ssl=0', false],
    ['sslmode=require&sslrootcert=system', {}],
    ['sslmode=no-verify', { rejectUnauthorized: false }],
    ['uselibpqcompat=true&sslmode=require', { rejectUnauthorized: false }],
    ['sslmode=require&uselibpqcompat=true', { rejectUnauthorized: false }],
  ])('%s has the meaning that it has for libpq or pg', (query, ssl) => {
    expect(read(`postgres://db/plants?${query}`).ssl).toEqual(ssl);
  });

  it.each(['prefer', 'require', 'verify-ca', 'verify-full'])(
    'sslmode=%s verifies the server, as pg does, without a warning',
    (mode) => {
      const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
      for (const query of [`sslmode=${mode}&options=-c a=b`, `options=-c a=b&sslmode=${mode}`]) {
        const env = { DATABASE_URL: `postgres://db/plants?${query}` };
        // pg warns only once, which may have been in another test.
        expect(readConfig(env).database.url).toBe(
          `postgres://db/plants?${query.replace(mode, 'verify-full').replace(' ', '%20')}`,
        );
      }
      expect(warn).not.toHaveBeenCalled();
      warn.mockRestore();
    },
  );
});

describe('PGSSLMODE and PGSSLROOTCERT', () => {
  // Any file that can be read.
  const FILE = 'package.json';
  const ca = expect.any(String);

  it.each<[string, Record<string, string>, unknown]>([
    ['', { PGSSLMODE: 'no-verify' }, { rejectUnauthorized: false }],
    ['', { PGSSLMODE: 'disable', PGSSLROOTCERT: FILE }, false],
    ['', { PGSSLROOTCERT: FILE }, { ca }],
    ['', { PGSSLROOTCERT: 'system' }, {}],
    ['?sslmode=require', { PGSSLMODE: 'disable', PGSSLROOTCERT: FILE }, { ca }],
    ['?ssl=0', { PGSSLMODE: 'require', PGSSLROOTCERT: FILE }, false],
    ['?user=a?b&sslmode=disable', { PGSSLMODE: 'require', PGSSLROOTCERT: FILE }, false],
    [`?sslrootcert=${FILE}`, { PGSSLROOTCERT: 'system', PGSSLMODE: 'allow' }, { ca }],
  ])('for an address that ends in "%s", %j is what the address lacks', (query, variables, ssl) => {
    const env = { DATABASE_URL: `postgres://db/plants${query}`, ...variables };
    expect(parse(readConfig(env).database.url!).ssl).toEqual(ssl);
  });

  it.each([
    ['PGSSLMODE', 'required', 'must have one of these values of sslmode: disable, allow, prefer'],
    ['PGSSLROOTCERT', '/nowhere', 'names a file in sslrootcert, sslcert or sslkey that cannot be'],
  ])('%s=%s is refused as in the address, but not for the embedded Postgres', (name, value, is) => {
    const env = { [name]: value };
    expect(() => readConfig({ DATABASE_URL: 'postgres://db/plants', ...env })).toThrow(
      `${name} ${is}`,
    );
    expect(() => readConfig(env)).not.toThrow();
  });
});

describe('PGPASSWORD', () => {
  const SPECIAL = '/ # % @ : ? & = + %41 \'"\\ ü€';

  it.each([
    'postgres://me@db:5432/plants',
    'postgres://me:@db/plants?sslmode=require',
    'postgres://me@/plants?host=/run/my postgres&options=-c a=b',
  ])('is the password for %s, whatever characters it has', (url) => {
    const { url: complete } = readConfig({ DATABASE_URL: url, PGPASSWORD: SPECIAL }).database;
    expect(parse(complete!)).toEqual({ ...read(url), password: SPECIAL });
  });

  it.each(['postgres://me:own@db/plants', 'postgres://db/plants?user=me&password=own'])(
    'is not used for %s, which has a password',
    (url) => {
      const env = { DATABASE_URL: url, PGPASSWORD: 'other' };
      expect(parse(readConfig(env).database.url!).password).toBe('own');
    },
  );
});

function messageOf(url: string): string {
  try {
    readConfig({ DATABASE_URL: url });
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  throw new Error('The address was accepted.');
}

/** Looks for every part of three characters that is not in the usual message. */
function expectNothingOf(password: string, message: string) {
  const usual = 'postgres://user:password@host:5432/database';
  for (let at = 0; at + 3 <= password.length; at++) {
    const part = password.slice(at, at + 3);
    if (!usual.includes(part)) expect(message).not.toContain(part);
  }
}
