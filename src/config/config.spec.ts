import { resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ConfigError } from './config-error.js';
import { readConfig } from './config.js';
import { settings } from './settings.js';

describe('readConfig', () => {
  it('has a default for everything', () => {
    expect(readConfig({})).toMatchObject({
      http: { host: '127.0.0.1', port: 3000, bodyLimit: 65536 },
      database: { url: undefined, dataDir: resolve('.data') },
      auth: { oidc: undefined },
      baseUrl: undefined,
    });
  });

  it('accepts fewer connections beside the embedded Postgres, which takes memory of the same machine', () => {
    const { maxConnections } = readConfig({}).http;
    expect(maxConnections).toBe(500);
    const server = readConfig({ DATABASE_URL: 'postgres://u@db.example.org/plants' });
    expect(server.http.maxConnections).toBe(4000);
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

  it.each(['', 'development', 'Production'])('NODE_ENV=%s is not production', (value) => {
    expect(readConfig({ NODE_ENV: value }).isProduction).toBe(false);
  });

  it.each([
    ['64kb', 65536],
    ['1MB', 1048576],
    ['100', 100],
  ])('reads the size %s as %d bytes', (text, bytes) => {
    expect(readConfig({ BODY_LIMIT: text }).http.bodyLimit).toBe(bytes);
  });

  it.each(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const)(
    'accepts the log level %s',
    (level) => {
      expect(readConfig({ LOG_LEVEL: level }).log.level).toBe(level);
    },
  );

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
    ['BASE_URL', 'https://secret;example.org'],
    ['BASE_URL', 'https://secret,example.org'],
    ['BASE_URL', 'https://*.secret.org'],
    ['DATA_DIR', '~'],
    ['DATA_DIR', '"/srv/secret"'],
    ['DATA_DIR', '~secret/plants'],
    ['DATA_DIR', '$HOME/secret'],
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
    ['CORS_ORIGINS', 'secret.example.org'],
    ['CORS_ORIGINS', 'https://secret.example.org/'],
    ['CORS_ORIGINS', 'https://secret.example.org/garden'],
    ['CORS_ORIGINS', 'https://secret.example.org:443'],
    ['CORS_ORIGINS', 'https://Secret.example.org'],
    ['CORS_ORIGINS', 'https://*.secret.example.org'],
    ['CORS_ORIGINS', 'https://me@secret.example.org'],
    ['CORS_ORIGINS', '*,https://secret.example.org'],
    ['CORS_ORIGINS', 'https://secret.example.org,'],
    ['CORS_ORIGINS', 'null'],
    ['METRICS_TOKEN_SHA256', `${'ab'.repeat(32)}c`],
    ['METRICS_TOKEN_SHA256', `c${'ab'.repeat(32)}`],
    ['OIDC_ISSUER', 'http://localhost:80@secret.example.org'],
    ['LOG_LEVEL', 'secret'],
    ['DATABASE_TIMEOUT_MS', 'secret'],
  ])('refuses %s=%s, naming the variable and not the value', (name, value) => {
    const read = () => readConfig({ [name]: value });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(new RegExp(`^${name} must be`));
    expect(read).not.toThrow(/secret/);
  });

  it.each([
    ['PORT', 0, 65_535],
    ['KEEP_ALIVE_TIMEOUT_MS', 0, 600_000],
    ['MAX_CONNECTIONS', 1, 1_000_000],
    ['BODY_LIMIT', 1, 1_048_576],
    ['REQUEST_TIMEOUT_MS', 100, 600_000],
    ['MAX_PENDING_REQUESTS', 1, 100_000],
    ['READINESS_TOLERANCE_MS', 0, 3_600_000],
    ['SHUTDOWN_DELAY_MS', 0, 600_000],
    ['SHUTDOWN_TIMEOUT_MS', 0, 600_000],
    ['TRUSTED_PROXY_HOPS', 0, 100],
    ['AUTH_FAILURES_PER_MINUTE', 1, 1_000_000],
    ['DATABASE_POOL_SIZE', 1, 1000],
    ['DATABASE_BATCH_SIZE', 1, 10_000],
    ['DATABASE_BATCHES', 1, 1000],
    ['DATABASE_TIMEOUT_MS', 10, 60_000],
    ['DATABASE_START_TIMEOUT_MS', 0, 86_400_000],
  ])('accepts %s from %d to %d, and nothing beside that', (name, min, max) => {
    const read = (value: number) => () => readConfig({ [name]: String(value) });
    expect(read(min)).not.toThrow();
    expect(read(max)).not.toThrow();
    const range = new RegExp(`^${name} must be .* from ${min} to ${max}`);
    expect(read(min - 1)).toThrow(min === 0 ? /must be/ : range);
    expect(read(max + 1)).toThrow(range);
  });

  it.each([
    '*',
    'https://garden.example.org',
    'http://localhost:5173',
    'http://[::1]:8080',
    'capacitor://localhost',
  ])('accepts the origin %s', (origin) => {
    expect(readConfig({ CORS_ORIGINS: origin }).http.corsOrigins).toEqual([origin]);
  });

  it.each([
    'https://login.example.org/realm',
    'http://localhost:8080',
    'http://127.0.0.1:8080/',
    'http://[::1]',
  ])('accepts the issuer %s unchanged', (issuer) => {
    expect(readConfig({ OIDC_ISSUER: issuer, OIDC_AUDIENCE: 'plants' }).auth.oidc).toEqual({
      issuer,
      audience: 'plants',
    });
  });

  it.each([
    'http://login.example.org',
    'http://localhost.example.org',
    'http://127.0.0.1.example.org',
    'ftp://localhost',
    'ws://127.0.0.1',
    'localhost',
  ])('refuses the issuer %s: whoever is on the way could replace its keys', (issuer) => {
    const read = () => readConfig({ OIDC_ISSUER: issuer, OIDC_AUDIENCE: 'plants' });
    expect(read).toThrow(/^OIDC_ISSUER must be an https:\/\/ address$/);
  });

  it.each([
    [{ OIDC_ISSUER: 'https://a' }, 'OIDC_AUDIENCE must be set with OIDC_ISSUER'],
    [{ OIDC_AUDIENCE: 'a' }, 'OIDC_ISSUER must be set with OIDC_AUDIENCE'],
  ])('refuses %j alone', (env, message) => {
    expect(() => readConfig(env)).toThrow(message);
    expect(readConfig({}).auth.oidc).toBeUndefined();
  });

  it.each([
    ['http://example.org', 'http://example.org'],
    ['http://[::1]:3000', 'http://[::1]:3000'],
    ['https://büro_1.example.org', 'https://büro_1.example.org'],
    ['HTTPS://example.org/a//', 'HTTPS://example.org/a'],
  ])('reads BASE_URL %s as %s', (text, url) => {
    expect(readConfig({ BASE_URL: text }).baseUrl).toBe(url);
  });

  it.each(['xhttp://example.org', 'https://me@example.org', 'https://:secret@example.org'])(
    'refuses BASE_URL %s',
    (text) => {
      expect(() => readConfig({ BASE_URL: text })).toThrow(/^BASE_URL must be/);
    },
  );

  it.each([
    [{ DATABASE_POOL_SIZE: '-1' }, /^DATABASE_POOL_SIZE must be a whole number from 1 to 1000$/],
    [
      { HOST: 'h'.repeat(5000) },
      /^HOST must be a host name or an IP address, such as 127\.0\.0\.1, ::1 or 0\.0\.0\.0$/,
    ],
    [{ OIDC_ISSUER: 'x' }, /^OIDC_ISSUER must be an https[^;]*$/],
    [{ PORT: 'x', OIDC_AUDIENCE: 'a' }, /^PORT [^;]*; OIDC_ISSUER must be set with/],
  ])('in %j, names only the variables that are wrong', (env, message) => {
    expect(() => readConfig(env)).toThrow(message);
  });

  it.each([
    '::1',
    '0.0.0.0',
    'localhost',
    'fe80::1%eth0',
    'a-b.example.org.',
    'bücher.example',
    'h'.repeat(253),
  ])('accepts the host %s', (host) => {
    expect(readConfig({ HOST: host }).http.host).toBe(host);
  });

  it('names every variable that is wrong', () => {
    expect(() => readConfig({ PORT: 'x', BODY_LIMIT: 'x' })).toThrow(/PORT .*; BODY_LIMIT /);
  });
});
