// Every setting: how its value is read, and what docs/settings.md and .env.example say of it (`npm run docs`).

import { z } from 'zod';
import {
  bytes,
  databaseParameter,
  databaseUrl,
  folder,
  host,
  httpUrl,
  integer,
  issuerUrl,
  oneOf,
  origins,
  sha256,
  text,
} from './parsers.js';

/** By the name of the variable. Without a default, `unset` says what holds then, and `example` shows a value. */
export const settings = z.object({
  HOST: host.prefault('127.0.0.1').meta({ meaning: 'the address to listen on' }),
  PORT: integer(0, 65_535)
    .prefault('3000')
    .meta({ meaning: 'the port to listen on; 0 is any free port' }),
  BASE_URL: httpUrl.optional().meta({
    meaning: 'where clients reach the service, for the OpenAPI document',
    unset: 'the address of the request',
    example: 'https://plants.example.org',
  }),
  CORS_ORIGINS: origins.optional().meta({
    meaning: 'origins whose web pages may use the service ([CORS](deployment.md#cors))',
    unset: 'none',
    example: 'https://garden.example.org,http://localhost:5173',
  }),
  DATABASE_URL: databaseUrl.optional().meta({
    meaning: 'the Postgres server (15 to 18), at one address',
    unset: 'embedded Postgres',
    example: 'postgres://user:password@localhost:5432/plants',
  }),
  PGPASSWORD: text.optional().meta({
    meaning: 'the password of the server, if `DATABASE_URL` has none; nothing is escaped',
    unset: 'none',
    example: 'password',
  }),
  PGSSLMODE: databaseParameter('sslmode').optional().meta({
    meaning: '[TLS to Postgres](deployment.md#tls-to-postgres), if `DATABASE_URL` does not say it',
    unset: 'none',
    example: 'verify-full',
  }),
  PGSSLROOTCERT: databaseParameter('sslrootcert').optional().meta({
    meaning: 'the certificate of the CA of the server, if `DATABASE_URL` does not name it',
    unset: 'those of Node.js',
    example: 'system',
  }),
  DATA_DIR: folder
    .prefault('.data')
    .meta({ meaning: 'where the embedded Postgres keeps its files' }),
  BODY_LIMIT: bytes(1, 1024 * 1024)
    .prefault('64kb')
    .meta({ meaning: 'the largest body; `kb` and `mb` (1024-based) may be used' }),
  LOG_LEVEL: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent')
    .prefault('info')
    .meta({ meaning: 'the least severe log entries that are written' }),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional().meta({
    meaning: 'where to send traces (OTLP over HTTP)',
    unset: 'no traces are sent',
    example: 'http://localhost:4318',
  }),
  TRUSTED_PROXY_HOPS: integer(0, 100, 'proxies')
    .prefault('0')
    .meta({ meaning: 'number of proxies whose `X-Forwarded-For` is trusted' }),
  AUTH_FAILURES_PER_MINUTE: integer(1, 1_000_000, 'tokens').prefault('300').meta({
    meaning: 'wrong tokens that an address may send in a minute; more get 429',
  }),
  OIDC_ISSUER: issuerUrl.optional().meta({
    meaning:
      'also accept JWT access tokens (RFC 9068) of this identity provider; set it with `OIDC_AUDIENCE`',
    unset: 'none',
    example: 'https://login.example.org',
  }),
  OIDC_AUDIENCE: text.optional().meta({
    meaning: 'the audience that these tokens name',
    unset: 'none',
    example: 'https://plants.example.org',
  }),
  METRICS_TOKEN_SHA256: sha256.optional().meta({
    meaning:
      'SHA-256 of a token that reads `/metrics`, and nothing else, even during an outage of the database',
    unset: 'none',
    example: '',
  }),
  REQUEST_TIMEOUT_MS: integer(100, 600_000, 'ms')
    .prefault('10000')
    .meta({ meaning: 'how long a request may take to arrive' }),
  KEEP_ALIVE_TIMEOUT_MS: integer(0, 600_000, 'ms')
    .prefault('65000')
    .meta({ meaning: 'how long a connection may be idle' }),
  MAX_CONNECTIONS: integer(1, 1_000_000, 'connections').optional().meta({
    meaning: 'open connections of clients',
    unset: '500 with the embedded Postgres, 4000 with `DATABASE_URL`',
    example: '500',
  }),
  MAX_PENDING_REQUESTS: integer(1, 100_000, 'requests')
    .prefault('1000')
    .meta({ meaning: 'requests to operations in flight; further ones get 50301' }),
  DATABASE_POOL_SIZE: integer(1, 1000, 'connections')
    .prefault('10')
    .meta({ meaning: 'connections to the database' }),
  DATABASE_BATCH_SIZE: integer(1, 10_000, 'plants').optional().meta({
    meaning: 'most plants in a batch; fewer if they are large; with Citus at most 32',
    unset: '256; with Citus 32',
    example: '256',
  }),
  DATABASE_BATCHES: integer(1, 1000, 'batches').optional().meta({
    meaning: 'most batches in flight',
    unset: '1; with Citus, `DATABASE_POOL_SIZE` minus 1',
    example: '1',
  }),
  DATABASE_TIMEOUT_MS: integer(10, 60_000, 'ms')
    .prefault('1500')
    .meta({ meaning: 'how long one statement may take, including the wait for a connection' }),
  DATABASE_START_TIMEOUT_MS: integer(0, 86_400_000, 'ms')
    .prefault('30000')
    .meta({ meaning: 'how long a start waits for the database' }),
  READINESS_TOLERANCE_MS: integer(0, 3_600_000, 'ms').prefault('0').meta({
    meaning:
      'how long `/health/ready` stays ok during an outage of the database; behind a load balancer, the time of a failover',
  }),
  SHUTDOWN_DELAY_MS: integer(0, 600_000, 'ms')
    .prefault('0')
    .meta({ meaning: 'how long to continue after SIGTERM, so that load balancers notice' }),
  SHUTDOWN_TIMEOUT_MS: integer(0, 600_000, 'ms')
    .prefault('10000')
    .meta({ meaning: 'how long requests in flight may take after that' }),
  NODE_ENV: text.optional().meta({
    meaning:
      'with `production`, `DATABASE_URL` or `DATA_DIR` must be set, and an embedded Postgres is a warning; nothing else changes',
    unset: 'none',
    example: 'production',
  }),
});

/** The settings that are secrets: each may be in a file, whose path is the value of the variable with `_FILE` after its name. */
export const SECRET_SETTINGS = [
  'DATABASE_URL',
  'PGPASSWORD',
  'METRICS_TOKEN_SHA256',
] as const satisfies readonly (keyof typeof settings.shape)[];
