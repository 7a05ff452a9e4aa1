import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ConfigError, readConfig } from './config.js';

describe('readConfig', () => {
  it('has a default for everything', () => {
    expect(readConfig({})).toMatchObject({
      http: { host: '127.0.0.1', port: 3000, bodyLimit: 65536 },
      database: { url: undefined, dataDir: resolve('.data') },
      baseUrl: undefined,
    });
  });

  it('treats an empty variable as not set', () => {
    expect(readConfig({ PORT: '', DATABASE_URL: '' })).toEqual(readConfig({}));
  });

  it.each([
    ['64kb', 65536],
    ['1MB', 1048576],
    ['100', 100],
  ])('reads the size %s as %d bytes', (text, bytes) => {
    expect(readConfig({ BODY_LIMIT: text }).http.bodyLimit).toBe(bytes);
  });

  it('drops the slash at the end of BASE_URL, because every path starts with a slash', () => {
    expect(readConfig({ BASE_URL: 'https://example.org/store/' }).baseUrl).toBe(
      'https://example.org/store',
    );
  });

  it.each([
    ['PORT', 'secret'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '1e3'],
    ['PORT', ' 3000'],
    ['BODY_LIMIT', '0'],
    ['BODY_LIMIT', '1gb'],
    ['BODY_LIMIT', '999999mb'],
    ['BASE_URL', 'secret'],
    ['BASE_URL', 'ftp://secret.example.org'],
    ['DATABASE_URL', 'mysql://u:secret@h/d'],
    ['DATABASE_URL', 'secret'],
    ['DATABASE_POOL_SIZE', '0'],
    ['BASE_URL', 'https://me:secret@plants.example.org'],
    ['OIDC_ISSUER', 'https://me:secret@login.example.org'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://me:secret@collector:4318'],
    ['HOST', 'secret host'],
    ['HOST', '[::1]'],
    ['HOST', 'localhost:3000'],
    ['HOST', 'http://secret'],
    ['HOST', 'secret..org'],
    ['HOST', 'h'.repeat(254)],
    ['METRICS_TOKEN_SHA256', 'secret'],
    ['OIDC_ISSUER', 'http://localhost:80@secret.example.org'],
    ['LOG_LEVEL', 'secret'],
    ['DATABASE_TIMEOUT_MS', 'secret'],
    ['WEB_CONCURRENCY', 'secret'],
    ['WEB_CONCURRENCY', '0'],
    ['WEB_CONCURRENCY', '513'],
    ['WEB_CONCURRENCY', '2.5'],
    ['WEB_CONCURRENCY', 'AUTO'],
  ])('refuses %s=%s, naming the variable and not the value', (name, value) => {
    const read = () => readConfig({ [name]: value });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(new RegExp(`^${name} must be`));
    expect(read).not.toThrow(/secret/);
  });

  it('has one process by default', () => {
    expect(readConfig({}).workers).toBe(1);
    expect(readConfig({ WEB_CONCURRENCY: '10' }).workers).toBe(10);
  });

  it('"auto" is one worker for each core, but each has at least two connections', () => {
    const auto = (poolSize: string) =>
      readConfig({ WEB_CONCURRENCY: 'auto', DATABASE_POOL_SIZE: poolSize }).workers;
    expect(auto('1000')).toBe(Math.min(availableParallelism(), 500));
    expect(auto('2')).toBe(1);
    expect(auto('5')).toBe(Math.min(availableParallelism(), 2));
    expect(auto('1')).toBe(1);
  });

  it('refuses more workers than connections, naming both variables', () => {
    expect(() => readConfig({ WEB_CONCURRENCY: '11' })).toThrow(
      /^WEB_CONCURRENCY must be at most DATABASE_POOL_SIZE$/,
    );
  });

  it.each([
    [{ DATABASE_POOL_SIZE: '-1' }, /^DATABASE_POOL_SIZE [^;]*$/],
    [{ DATABASE_POOL_SIZE: '0', WEB_CONCURRENCY: '4' }, /^DATABASE_POOL_SIZE [^;]*$/],
    [{ WEB_CONCURRENCY: 'x' }, /^WEB_CONCURRENCY must be auto[^;]*$/],
    [{ OIDC_ISSUER: 'x' }, /^OIDC_ISSUER must be an https[^;]*$/],
    [{ PORT: 'x', WEB_CONCURRENCY: '11' }, /^PORT [^;]*; WEB_CONCURRENCY must be at most/],
  ])('in %j, names only the variables that are wrong', (env, message) => {
    expect(() => readConfig(env)).toThrow(message);
  });

  it.each(['::1', '0.0.0.0', 'localhost', 'fe80::1%eth0', 'a-b.example.org.', 'bücher.example'])(
    'accepts the host %s',
    (host) => {
      expect(readConfig({ HOST: host }).http.host).toBe(host);
    },
  );

  it('names every variable that is wrong', () => {
    expect(() => readConfig({ PORT: 'x', BODY_LIMIT: 'x' })).toThrow(/PORT .*; BODY_LIMIT /);
  });
});
