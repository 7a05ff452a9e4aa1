import { resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ConfigError } from './config-error.js';
import { readConfig } from './config.js';
import { settings } from './settings.js';

describe('readConfig', () => {
  it('has a default for everything', () => {
    expect(readConfig({})).toMatchObject({
      http: { host: '127.0.0.1', port: 3000, bodyLimit: 65536, maxConnections: 500 },
      database: { url: undefined, dataDir: resolve('.data') },
      auth: { oidc: undefined },
      baseUrl: undefined,
    });
  });

  it('accepts more connections with a server, which has memory of its own', () => {
    const env = { DATABASE_URL: 'postgres://u@db.example.org/plants' };
    expect(readConfig(env).http.maxConnections).toBe(4000);
  });

  it('lets a client be idle for longer than it may wait for its response', () => {
    const idleTimeout = (request: number, database: number) =>
      readConfig({ REQUEST_TIMEOUT_MS: `${request}`, DATABASE_TIMEOUT_MS: `${database}` }).http
        .idleTimeout;
    // The keys of an issuer may take 6 s, and the database six times its limit.
    expect(idleTimeout(100, 1000)).toBe(6000 + 6 * 1000);
    expect(idleTimeout(6001, 1000)).toBe(6001 + 6 * 1000);
  });

  it('reads every setting from its own variable', () => {
    const env = {
      HOST: 'plants.example.org',
      PORT: '1001',
      BASE_URL: 'https://example.org/store',
      CORS_ORIGINS: 'https://a.example.org, http://localhost:5173',
      LOG_LEVEL: 'warn',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
      KEEP_ALIVE_TIMEOUT_MS: '1002',
      MAX_CONNECTIONS: '1004',
      BODY_LIMIT: '1005',
      REQUEST_TIMEOUT_MS: '1006',
      MAX_PENDING_REQUESTS: '1007',
      READINESS_TOLERANCE_MS: '1008',
      SHUTDOWN_DELAY_MS: '1009',
      SHUTDOWN_TIMEOUT_MS: '1010',
      TRUSTED_PROXY_HOPS: '11',
      AUTH_FAILURES_PER_MINUTE: '1012',
      METRICS_TOKEN_SHA256: 'ab'.repeat(32),
      OIDC_ISSUER: 'https://login.example.org',
      OIDC_AUDIENCE: 'plants',
      DATA_DIR: '/srv/plants',
      DATABASE_URL: 'postgres://u@db.example.org/plants',
      PGPASSWORD: 'p',
      PGSSLMODE: 'no-verify',
      PGSSLROOTCERT: 'package.json',
      DATABASE_POOL_SIZE: '13',
      DATABASE_BATCH_SIZE: '1014',
      DATABASE_BATCHES: '15',
      DATABASE_TIMEOUT_MS: '1016',
      DATABASE_START_TIMEOUT_MS: '1017',
      NODE_ENV: 'production',
    };
    expect(Object.keys(env).sort()).toEqual(Object.keys(settings.shape).sort());
    expect(readConfig(env)).toEqual({
      http: {
        host: 'plants.example.org',
        port: 1001,
        keepAliveTimeout: 1002,
        idleTimeout: 6000 + 6 * 1016,
        maxConnections: 1004,
        bodyLimit: 1005,
        requestTimeout: 1006,
        maxPendingRequests: 1007,
        readinessTolerance: 1008,
        shutdownDelay: 1009,
        shutdownTimeout: 1010,
        trustedProxyHops: 11,
        corsOrigins: ['https://a.example.org', 'http://localhost:5173'],
      },
      log: { level: 'warn' },
      tracing: { endpoint: 'http://collector:4318' },
      auth: {
        metricsTokenHash: 'ab'.repeat(32),
        failuresPerMinute: 1012,
        oidc: { issuer: 'https://login.example.org', audience: 'plants' },
      },
      baseUrl: 'https://example.org/store',
      database: {
        url: 'postgres://u@db.example.org/plants?sslmode=no-verify&sslrootcert=package.json&password=p',
        dataDir: '/srv/plants',
        poolSize: 13,
        batchSize: 1014,
        batchesInFlight: 15,
        timeout: 1016,
        startTimeout: 1017,
      },
      isProduction: true,
    });
  });

  it('treats an empty variable as not set', () => {
    const empty = { PORT: '', DATABASE_URL: '', DATABASE_URL_FILE: '', PGPASSWORD: '' };
    expect(readConfig(empty)).toEqual(readConfig({}));
  });

  it('asks in production for the place of the plants, and names a variable that may be meant', () => {
    expect(() => readConfig({ NODE_ENV: 'production', DATBASE_URL: 'secret' })).toThrow(
      new ConfigError(
        'DATABASE_URL must be set with NODE_ENV=production, or DATA_DIR to use an embedded Postgres in that folder; DATBASE_URL is not a setting: did you mean DATABASE_URL?',
      ),
    );
    expect(readConfig({ NODE_ENV: 'production', DATA_DIR: '/srv/plants' })).toMatchObject({
      isProduction: true,
    });
    expect(readConfig({ NODE_ENV: 'Production' })).toMatchObject({ isProduction: false });
  });

  it.each([
    ['64kb', 65536],
    ['1MB', 1048576],
    ['100', 100],
  ])('reads the size %s as %d bytes', (text, bytes) => {
    expect(readConfig({ BODY_LIMIT: text }).http.bodyLimit).toBe(bytes);
  });

  it.each([
    ['PORT', '-1'],
    ['PORT', '1e3'],
    ['PORT', ' 3000'],
    ['LOG_LEVEL', 'secret'],
    ['BODY_LIMIT', '1gb'],
    ['BODY_LIMIT', '2mb'],
    ['BASE_URL', 'ftp://secret.example.org'],
    ['BASE_URL', 'xhttp://secret.example.org'],
    ['BASE_URL', 'https://secret,example.org'],
    ['BASE_URL', 'https://:secret@plants.example.org'],
    ['DATA_DIR', '~secret/plants'],
    ['DATA_DIR', '$HOME/secret'],
    ['DATA_DIR', '"/srv/secret"'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://me:secret@collector:4318'],
    ['HOST', '[::1]'],
    ['HOST', 'localhost:3000'],
    ['HOST', 'secret..org'],
    ['HOST', 'h'.repeat(254)],
    ['METRICS_TOKEN_SHA256', `${'ab'.repeat(32)}c`],
    ['METRICS_TOKEN_SHA256', `g${'ab'.repeat(31)}c`],
    ['CORS_ORIGINS', 'secret.example.org'],
    ['CORS_ORIGINS', 'https://secret.example.org/'],
    ['CORS_ORIGINS', 'https://secret.example.org:443'],
    ['CORS_ORIGINS', 'https://Secret.example.org'],
    ['CORS_ORIGINS', 'https://*.secret.example.org'],
    ['CORS_ORIGINS', '*,https://secret.example.org'],
    ['CORS_ORIGINS', 'https://secret.example.org,'],
    ['CORS_ORIGINS', 'null'],
    ['OIDC_ISSUER', 'https://me:secret@login.example.org'],
  ])('refuses %s=%s, naming the variable and not the value', (name, value) => {
    const read = () => readConfig({ [name]: value });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(new RegExp(`^${name} must be`));
    expect(read).not.toThrow(/secret/);
  });

  it('accepts a number from the lowest to the highest, and nothing beside them', () => {
    const read = (value: number) => () => readConfig({ DATABASE_POOL_SIZE: String(value) });
    expect(read(1)).not.toThrow();
    expect(read(1000)).not.toThrow();
    const message = 'DATABASE_POOL_SIZE must be a whole number from 1 to 1000';
    expect(read(0)).toThrow(message);
    expect(read(1001)).toThrow(message);
  });

  it.each(['*', 'http://localhost:5173', 'http://[::1]:8080', 'capacitor://localhost'])(
    'accepts the origin %s',
    (origin) => {
      expect(readConfig({ CORS_ORIGINS: origin }).http.corsOrigins).toEqual([origin]);
    },
  );

  it.each(['https://login.example.org/realm', 'http://127.0.0.1:8080/', 'http://[::1]'])(
    'accepts the issuer %s unchanged',
    (issuer) => {
      expect(readConfig({ OIDC_ISSUER: issuer, OIDC_AUDIENCE: 'plants' }).auth.oidc).toEqual({
        issuer,
        audience: 'plants',
      });
    },
  );

  it.each([
    'http://login.example.org',
    'http://localhost.example.org',
    'ws://127.0.0.1',
    'localhost',
  ])('refuses the issuer %s: whoever is on the way could replace its keys', (issuer) => {
    const read = () => readConfig({ OIDC_ISSUER: issuer, OIDC_AUDIENCE: 'plants' });
    expect(read).toThrow(/^OIDC_ISSUER must be an https:\/\/ address$/);
  });

  it.each([
    ['http://[::1]:3000', 'http://[::1]:3000'],
    ['https://büro_1.example.org', 'https://büro_1.example.org'],
    ['HTTPS://example.org/a//', 'HTTPS://example.org/a'],
  ])('reads BASE_URL %s as %s, because every path starts with a slash', (text, url) => {
    expect(readConfig({ BASE_URL: text }).baseUrl).toBe(url);
  });

  it.each(['0.0.0.0', 'fe80::1%eth0', 'a-b.example.org.', 'bücher.example', 'h'.repeat(253)])(
    'accepts the host %s',
    (host) => {
      expect(readConfig({ HOST: host }).http.host).toBe(host);
    },
  );

  it.each([
    [{ OIDC_ISSUER: 'https://a' }, /^OIDC_AUDIENCE must be set with OIDC_ISSUER$/],
    [{ OIDC_AUDIENCE: 'a' }, /^OIDC_ISSUER must be set with OIDC_AUDIENCE$/],
    [{ OIDC_ISSUER: 'x' }, /^OIDC_ISSUER must be an https[^;]*$/],
    [{ PORT: 'x', OIDC_AUDIENCE: 'a' }, /^PORT [^;]*; OIDC_ISSUER must be set with/],
    [{ PORT: 'x', BODY_LIMIT: 'x' }, /^PORT [^;]*; BODY_LIMIT [^;]*$/],
  ])('in %j, names every variable that is wrong, and no other', (env, message) => {
    expect(() => readConfig(env)).toThrow(message);
  });
});
