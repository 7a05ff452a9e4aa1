import { describe, expect, it, jest } from '@jest/globals';
import { parse } from 'pg-connection-string';
import { ConfigError } from './config-error.js';
import { readConfig } from './config.js';

/** DATABASE_URL as pg reads it. */
const read = (url: string) => parse(readConfig({ DATABASE_URL: url }).database.url!);

describe('DATABASE_URL', () => {
  it.each<[string, Record<string, unknown>]>([
    ['postgres://me:pass@db:5432/plants', { user: 'me', password: 'pass', port: '5432' }],
    ['POSTGRESQL://db', { host: 'db', database: null }],
    ['postgres://db:65535/plants', { port: '65535' }],
    ['postgres:///plants', { host: '', database: 'plants' }],
    [' postgres://me@h/plants\n', { host: 'h', user: 'me' }],
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
    'postgres://me:pa,ss@h1,h2:5433/plants',
    'postgres://h1:5432,h2:5433/plants?sslmode=disable',
    'postgresql://me@[::1],[::2]:5433,db/plants',
    'postgres:///plants?host=h1,h2&port=5432,5433',
    'postgres://me@%2Frun%2Fa,h2/plants',
  ])('%s is refused: it names several hosts', (url) => {
    expect(() => read(url)).toThrow(
      new ConfigError(
        'DATABASE_URL must name one host. It must lead to the primary: the server itself, or HAProxy, PgBouncer or another endpoint in front of several',
      ),
    );
  });

  it.each(['require', 'prefer', 'verify-full', 'allow', 'disable', 'false', 'True', ''])(
    'ssl=%s, with which pg would fail, is refused',
    (value) => {
      expect(() => read(`postgres://db/plants?ssl=${value}`)).toThrow(
        'DATABASE_URL must have sslmode instead of ssl: sslmode=verify-full for TLS, sslmode=disable for none',
      );
    },
  );

  it.each<[string, unknown]>([
    ['ssl=true', true],
    ['ssl=1', true],
    ['ssl=0', false],
    ['sslrootcert=system', {}],
    ['sslmode=require&sslrootcert=system', {}],
    ['sslrootcert=system&sslmode=verify-full&options=-c a=b', {}],
  ])('%s has the meaning that it has for libpq or pg', (query, ssl) => {
    expect(read(`postgres://db/plants?${query}`).ssl).toEqual(ssl);
  });

  it.each([
    ['schema', '?options=-c%20search_path%3DNAME'],
    ['currentSchema', '?options=-c%20search_path%3DNAME'],
    ['search_path', '?options=-c%20search_path%3DNAME'],
    ['searchpath', '?options=-c%20search_path%3DNAME'],
    ['useSSL', 'sslmode=verify-full for TLS'],
    ['tls', 'sslmode=verify-full for TLS'],
    ['sslaccept', 'sslmode=verify-full for TLS'],
  ])('the parameter %s of other programs is refused: it would have no effect', (name, form) => {
    expect(() => read(`postgres://db/plants?${name}=garden`)).toThrow(
      `DATABASE_URL has the parameter ${name}, which has no effect: write ${form}`,
    );
  });

  it.each(['"', "'"])('%s around the address is refused in words', (quote) => {
    expect(() => read(`${quote}postgres://db/plants${quote}`)).toThrow(
      'DATABASE_URL has quotes around it, which would be a part of it: leave them out',
    );
  });

  it.each([
    ['sslmod=verify-full', 'sslmode'],
    ['sslMode=verify-full', 'sslmode'],
    ['ssmod=verify-full', 'sslmode'],
    ['application_name=a&ssl_mode=verify-full', 'sslmode'],
    ['sslmode=verify-full&sslrootcrt=/ca.crt', 'sslrootcert'],
  ])('a mistyped parameter of TLS, which pg would ignore, is refused: %s', (query, name) => {
    expect(() => read(`postgres://me:hunter2@db/plants?${query}`)).toThrow(
      new ConfigError(
        `DATABASE_URL has a parameter that is nearly ${name}, and has no effect: write it as ${name}`,
      ),
    );
  });

  it.each(['disabl', 'requir', 'true', ''])(
    'the mode "%s" of TLS, which pg would take for another one, is refused',
    (mode) => {
      expect(() => read(`postgres://me:hunter2@db/plants?sslmode=${mode}`)).toThrow(
        new ConfigError(
          'DATABASE_URL must have one of these values of sslmode: disable, allow, prefer, require, verify-ca, verify-full, no-verify',
        ),
      );
    },
  );

  it('verify-ca in the meaning of libpq needs the certificate of the authority', () => {
    expect(() => read('postgres://db/plants?uselibpqcompat=true&sslmode=verify-ca')).toThrow(
      'DATABASE_URL must have sslrootcert=FILE for sslmode=verify-ca, with the certificate of the authority',
    );
  });

  it('parameters of other programs are accepted', () => {
    const query = 'pgbouncer=true&channel_binding=require&sslcrl=/a&sslsni=1&sslmode=disable';
    expect(read(`postgres://db/plants?${query}`)).toMatchObject({ ssl: false });
  });

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
    ['zyxwvu', 'postgres://db/zyxwvu?port=1e3'],
    ['zyxwvu', 'postgres:/me:zyxwvu@db/plants'],
    ['zyxwvu', 'host=db password=zyxwvu'],
    ['zyxwvu', 'socket:/run/postgres?password=zyxwvu'],
  ])('(%s) %s is no address', (password, url) => {
    const message = messageOf(url);
    expect(message).toMatch(/^DATABASE_URL must be an address such as postgres:\/\//);
    expectNothingOf(password, message);
  });

  it.each([
    ['/zyxwvu', 'there is no such file or folder'],
    ['/', 'it is a folder'],
  ])('says why the file of a certificate (%s) cannot be read, and not its name', (path, reason) => {
    expect(messageOf(`postgres://db/plants?sslrootcert=${path}`)).toBe(
      `DATABASE_URL names a file in sslrootcert, sslcert or sslkey that cannot be read: ${reason}`,
    );
  });

  it.each(['prefer', 'require', 'verify-ca', 'verify-full'])(
    'sslmode=%s verifies the server, as pg does, without a warning',
    (mode) => {
      const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
      for (const parameters of [
        `sslmode=${mode}&options=-c a=b`,
        `options=-c a=b&sslmode=${mode}`,
      ]) {
        const { ssl, options } = read(`postgres://db/plants?${parameters}`);
        expect({ ssl, options }).toEqual({ ssl: {}, options: '-c a=b' });
        // pg warns only once, which may have been in another test.
        expect(
          readConfig({ DATABASE_URL: `postgres://db/plants?${parameters}` }).database.url,
        ).toBe(
          `postgres://db/plants?${parameters.replace(mode, 'verify-full').replace(' ', '%20')}`,
        );
      }
      expect(warn).not.toHaveBeenCalled();
      warn.mockRestore();
    },
  );

  it('sslmode=no-verify does not verify the server', () => {
    expect(read('postgres://db/plants?sslmode=no-verify').ssl).toEqual({
      rejectUnauthorized: false,
    });
  });

  it.each(['uselibpqcompat=true&sslmode=require', 'sslmode=require&uselibpqcompat=true'])(
    'with %s, sslmode has the same meaning as in libpq',
    (parameters) => {
      expect(read(`postgres://db/plants?${parameters}`).ssl).toEqual({ rejectUnauthorized: false });
    },
  );
});

describe('PGSSLMODE and PGSSLROOTCERT', () => {
  // Any file that can be read.
  const FILE = 'package.json';
  const ca = expect.any(String);

  it.each<[string, Record<string, string>, unknown]>([
    ['', { PGSSLMODE: 'require' }, {}],
    ['', { PGSSLMODE: 'no-verify' }, { rejectUnauthorized: false }],
    ['', { PGSSLMODE: 'disable', PGSSLROOTCERT: FILE }, false],
    ['', { PGSSLROOTCERT: FILE }, { ca }],
    ['', { PGSSLROOTCERT: 'system' }, {}],
    ['?sslmode=require', { PGSSLMODE: 'disable', PGSSLROOTCERT: FILE }, { ca }],
    ['?ssl=true', { PGSSLMODE: 'disable' }, true],
    ['?ssl=0', { PGSSLMODE: 'require', PGSSLROOTCERT: FILE }, false],
    ['?user=a?b&sslmode=disable', { PGSSLMODE: 'require', PGSSLROOTCERT: FILE }, false],
    [`?sslrootcert=${FILE}`, { PGSSLROOTCERT: 'system', PGSSLMODE: 'allow' }, { ca }],
  ])('for an address that ends in "%s", %j is what the address lacks', (query, variables, ssl) => {
    const env = { DATABASE_URL: `postgres://db/plants${query}`, ...variables };
    expect(parse(readConfig(env).database.url!).ssl).toEqual(ssl);
  });

  it('are not read for the embedded Postgres', () => {
    expect(() => readConfig({ PGSSLMODE: 'x', PGSSLROOTCERT: '/nowhere' })).not.toThrow();
  });
});

describe('PGPASSWORD', () => {
  const readWith = (url: string, password: string) =>
    parse(readConfig({ DATABASE_URL: url, PGPASSWORD: password }).database.url!);
  const SPECIAL = '/ # % @ : ? & = + %41 \'"\\ ü€';

  it.each([
    'postgres://me@db:5432/plants',
    'postgres://me:@db/plants?sslmode=require',
    'postgres://me@/plants?host=/run/my postgres&options=-c a=b',
    'postgres://db',
    'postgres:///plants?user=me',
  ])('is the password for %s, whatever characters it has', (url) => {
    const without = read(url);
    expect(readWith(url, SPECIAL)).toEqual({ ...without, password: SPECIAL });
  });

  it.each(['postgres://me:own@db/plants', 'postgres://db/plants?user=me&password=own'])(
    'is not used for %s, which has a password',
    (url) => {
      expect(readWith(url, 'other').password).toBe('own');
    },
  );

  it('is not used for the embedded Postgres', () => {
    expect(readConfig({ PGPASSWORD: 'other' }).database.url).toBeUndefined();
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
