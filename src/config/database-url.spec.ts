import { describe, expect, it, jest } from '@jest/globals';
import { parse } from 'pg-connection-string';
import { ConfigError, readConfig } from './config.js';

/** DATABASE_URL as pg reads it. */
const read = (url: string) => parse(readConfig({ DATABASE_URL: url }).database.url!);

describe('DATABASE_URL', () => {
  it.each<[string, Record<string, unknown>]>([
    ['postgres://me:pass@db:5432/plants', { user: 'me', password: 'pass', port: '5432' }],
    ['POSTGRESQL://db', { host: 'db', database: null }],
    ['postgres:///plants', { host: '', database: 'plants' }],
    ['postgres://me@/plants?host=/run/my postgres', { host: '/run/my postgres', user: 'me' }],
    ['postgres://me:pass@%2Frun%2Fpostgres/plants', { host: '/run/postgres' }],
    ['postgres://me:pass@[::1]:5432/plants', { host: '::1', port: '5432' }],
    ['postgres://db/plants?options=-c search_path=x', { options: '-c search_path=x' }],
    ['postgres://db/plants?options=-c%20search_path%3Dx', { options: '-c search_path=x' }],
    ['postgres://db/plants?user=me&password=a/b?c:d&port=1', { password: 'a/b?c:d', port: '1' }],
    ['postgres://db/plants?application_name=a&sslmode=disable', { ssl: false }],
    ['postgres://me:hun%2Fter%23%3F%40%3A%25@db/plants', { password: 'hun/ter#?@:%', host: 'db' }],
    ['postgres://me:hun%2Fter2@db/plants?options=-c a=b', { password: 'hun/ter2' }],
    // Not ambiguous: a host has no second colon.
    ['postgres://me:hun:ter2@db/plants', { password: 'hun:ter2', host: 'db' }],
    ['postgres://me:hun[ter2]&=+@db/plants', { password: 'hun[ter2]&=+', host: 'db' }],
  ])('pg reads %s correctly', (url, expected) => {
    expect(read(url)).toMatchObject(expected);
  });

  it.each([
    'postgres://me:pa,ss@h1,h2:5432/plants',
    'postgres://h1:5432,h2:5433/plants',
    'postgres://me@[::1],h2/plants',
    'postgres:///plants?host=h1,h2',
  ])('%s is refused: pg would look for one host of that name', (url) => {
    expect(() => read(url)).toThrow(
      /^DATABASE_URL must name one host, which leads to the primary: /,
    );
  });

  it.each(['any', 'read-write', 'primary'])('target_session_attrs=%s is accepted', (value) => {
    expect(read(`postgres://me:pa,ss@db/plants?target_session_attrs=${value}`).host).toBe('db');
  });

  it.each(['read-only', 'standby', 'prefer-standby', ''])(
    'target_session_attrs=%s is refused: the service needs the primary',
    (value) => {
      expect(() => read(`postgres://db/plants?target_session_attrs=${value}`)).toThrow(
        'DATABASE_URL must have no target_session_attrs, or read-write: the service needs the primary',
      );
    },
  );

  /** Passwords that look, unescaped, like a part of the address. */
  const passwords = [
    'zyx/wvu',
    'zyx#wvu',
    'zyx?wvu',
    '5432/wvuts',
    '5432?wvuts',
    '5432#wvuts',
    '/zyxwvu',
    '?zyxwvu',
    '#zyxwvu',
    'zyxwvu/',
    'zyx@wvu',
    'zyx@wvu/tsr',
    'zyx@wvu?tsr',
    'zyx@/wvu',
    'zyx@wvu#tsr',
    'zyx@5432/wvu@tsr',
    '5432/wvu:tsr',
    '5432/wvu?host=tsr',
    '5432?host=wvu&port=987',
    '5432?password=wvu',
    'zyx%wvu',
    'zyx%ZZwvu',
    'zyx%FFwvu',
    'zyxwvu%',
    '//zyx/wvu',
    'zyx /wvu',
  ];
  const addresses = passwords.flatMap((password) => [
    [password, `postgres://me:${password}@db:5432/plants`],
    [password, `postgres://me:${password}@db`],
    [password, `postgresql://:${password}@/plants?host=/run/postgres`],
    [password, `postgres://me:${password}@[::1]/plants?sslmode=require`],
  ]);
  // In parameters, / and ? need not be escaped.
  for (const password of ['zyx#wvu', 'zyx@wvu', 'zyx%ZZwvu', 'zyxwvu%', 'zyx/wvu@tsr']) {
    addresses.push([password, `postgres://db/plants?user=me&password=${password}`]);
  }

  it.each(addresses)('with the password %s unescaped, %s is refused', (password, url) => {
    const message = messageOf(url);
    expect(message).toMatch(
      /^DATABASE_URL must have special characters .* escaped: \/ as %2F, # as %23, \? as %3F, @ as %40, : as %3A, % as %25$/,
    );
    expectNothingOf(password, message);
  });

  it.each([
    ['zyxwvu', 'postgres://me:zyxwvu'],
    ['zyxwvu', 'postgres://me:zyxwvu/plants'],
    ['zyxwvu', 'postgres://me:zyxwvu@db:port/plants'],
    ['zyxwvu', 'postgres://me:zyxwvu@db:65536/plants'],
    ['zyxwvu', 'postgres://me@db/plants?port=zyxwvu'],
    ['zyxwvu', 'postgres:/me:zyxwvu@db/plants'],
    ['zyxwvu', ' postgres://me:zyxwvu@db/plants'],
    ['zyxwvu', 'host=db password=zyxwvu'],
    ['zyxwvu', 'socket:/run/postgres?password=zyxwvu'],
  ])('(%s) %s is no address', (password, url) => {
    const message = messageOf(url);
    expect(message).toMatch(/^DATABASE_URL must be an address such as postgres:\/\//);
    expectNothingOf(password, message);
  });

  it('names no file that cannot be read', () => {
    expect(messageOf('postgres://db/plants?sslrootcert=/zyxwvu')).toBe(
      'DATABASE_URL names a file in sslrootcert, sslcert or sslkey that cannot be read (ENOENT)',
    );
  });

  it.each(['prefer', 'require', 'verify-ca', 'verify-full'])(
    'sslmode=%s verifies the server, as pg does, without a warning',
    (mode) => {
      const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
      expect(read(`postgres://db/plants?sslmode=${mode}&options=-c a=b`)).toMatchObject({
        ssl: {},
        options: '-c a=b',
      });
      expect(warn).not.toHaveBeenCalled();
      warn.mockRestore();
    },
  );

  it('with uselibpqcompat=true, sslmode has the same meaning as in libpq', () => {
    expect(read('postgres://db/plants?uselibpqcompat=true&sslmode=require').ssl).toEqual({
      rejectUnauthorized: false,
    });
  });
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
