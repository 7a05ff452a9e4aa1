import { expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { readFileSync } from 'node:fs';
import { settings } from './config.js';
import { FAMILIES, problemsOfEnvironment, problemsOfFile } from './unknown-settings.js';

const SETTINGS = [
  'PORT',
  'TRUSTED_PROXY_HOPS',
  'DATABASE_URL',
  'DATABASE_URL_FILE',
  'DATABASE_POOL_SIZE',
  'BODY_LIMIT',
  'MAX_CONNECTIONS',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'PGPASSWORD',
  'NODE_ENV',
];

it.each([
  ['DATABSE_URL', ': did you mean DATABASE_URL?'],
  ['DATABASEURL', ': did you mean DATABASE_URL?'],
  ['database_url', ': did you mean DATABASE_URL?'],
  ['BODYLIMIT', ': did you mean BODY_LIMIT?'],
  ['NODE_EVN', ': did you mean NODE_ENV?'],
  ['PROT', ': did you mean PORT?'],
  ['PORTS', ': did you mean PORT?'],
  ['MAX_CONN', ': did you mean MAX_CONNECTIONS?'],
  ['HTTP_PORT', ': did you mean PORT?'],
  ['DB_HOST', ': did you mean DATABASE_URL?'],
  ['PGPASSWRD', ': did you mean PGPASSWORD?'],
  ['PGHOSTS', ': did you mean PGHOST?'],
  ['OTEL_EXPORTER_ENDPOINT', ': did you mean OTEL_EXPORTER_OTLP_ENDPOINT?'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', ': did you mean OTEL_EXPORTER_OTLP_ENDPOINT?'],
  ['COMPOSE_PROFILE', ': did you mean COMPOSE_PROFILES?'],
  ['PGFOO', ', and has no effect: the nearest known name is PGHOST'],
  ['DATABASE_SIZE', ': did you mean DATABASE_POOL_SIZE?'],
  ['MY_FLAG', ': the nearest known name is PORT (.env.example lists all settings)'],
])('%s in a file is not a setting%s', (name, hint) => {
  expect(problemsOfFile('.env', ['PORT', name], SETTINGS)).toEqual([
    `${name} in .env is not a setting${hint}`,
  ]);
});

it.each(['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'NODE_USE_ENV_PROXY'])(
  '%s in a file has no effect, because Node reads it earlier',
  (name) => {
    expect(problemsOfFile('.env', [name], SETTINGS)).toEqual([
      `${name} in .env is not read: Node.js reads it before this file, so set it in the environment`,
    ]);
  },
);

it.each([
  ['PGSSLROOTCERT', 'sslrootcert'],
  ['PGSSLCERT', 'sslcert'],
  ['PGSSLKEY', 'sslkey'],
])('%s in a file has no effect: pg reads only the parameter %s', (name, parameter) => {
  expect(problemsOfFile('.env', [name], SETTINGS)).toEqual([
    `${name} in .env is not read: add the parameter ${parameter} to DATABASE_URL`,
  ]);
});

it('names every wrong variable of a file', () => {
  expect(problemsOfFile('.env', ['PORTS', 'A'], SETTINGS)).toHaveLength(2);
});

it('accepts in a file what libraries and Docker Compose read', () => {
  const compose = readFileSync('docker-compose.yml', 'utf8');
  const names = [...compose.matchAll(/\$\{(\w+)/g)].map(([, name]) => name!);
  expect(parse(compose)).toHaveProperty('services');
  expect(names).toContain('POSTGRES_PASSWORD');
  const others = FAMILIES.flatMap((family) => family.names);
  expect(problemsOfFile('.env', [...names, ...others], Object.keys(settings.shape))).toEqual([]);
});

it.each([
  'COMPOSE_FILE',
  'COMPOSE_PROFILES',
  'COMPOSE_PROJECT_NAME',
  'DOCKER_CONTEXT',
  'DOCKER_HOST',
  'GRAFANA_PASSWORD',
  'NODE_TLS_REJECT_UNAUTHORIZED',
  'OTEL_EXPORTER_OTLP_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_CLIENT_KEY',
  'OTEL_EXPORTER_OTLP_COMPRESSION',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TIMEOUT',
  'OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY',
  'OTEL_EXPORTER_OTLP_TRACES_COMPRESSION',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT',
  'PGDATABASE',
  'PGHOST',
  'PGOPTIONS',
  'PGPASSFILE',
  'PGPORT',
  'PGSSLMODE',
  'PGSSLNEGOTIATION',
  'PGUSER',
  'PLANT_STORE_TOKEN',
  'PLANT_STORE_URL',
  'POSTGRES_PASSWORD',
  'TZ',
])('accepts %s in a file, for another program', (name) => {
  expect(problemsOfFile('.env', [name], SETTINGS)).toEqual([]);
});

it.each([
  ['DATABASE_POOL', ': did you mean DATABASE_POOL_SIZE?'],
  ['DATABASE_URI', ': did you mean DATABASE_URL?'],
  ['CORS_ORIGIN', ': the nearest known name is BODY_LIMIT (.env.example lists all settings)'],
  ['BODY_LIMITS', ': did you mean BODY_LIMIT?'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', ': did you mean OTEL_EXPORTER_OTLP_ENDPOINT?'],
  ['DATBASE_URL', ': did you mean DATABASE_URL?'],
  ['OIDC_CLIENT_ID', ': the nearest known name is BODY_LIMIT (.env.example lists all settings)'],
  ['PLANT_STORE_TOKN', ': did you mean PLANT_STORE_TOKEN?'],
  ['TRUSTED_PROXIES', ': did you mean TRUSTED_PROXY_HOPS?'],
])('%s in the environment is not a setting', (name, hint) => {
  expect(problemsOfEnvironment([name], SETTINGS)).toEqual([
    `The variable ${name} is not a setting and has no effect${hint}`,
  ]);
});

it.each([
  'PATH',
  'DATABASE_URL',
  'PLANT_STORE_PORT_3000_TCP_ADDR',
  'PLANT_STORE_SERVICE_HOST',
  'PLANT_STORE_TOKEN',
  'PLANT_STORE_URL',
  'PLANT_STORE_CALLER_DIR',
  'DATABASE_SERVICE_HOST',
  'DATABASE_SERVICE_PORT_POSTGRES',
  'DATABASE_PORT',
  'DATABASE_PORT_5432_TCP_ADDR',
  'MAX_MEMORY',
])('%s in the environment belongs to another program, or is a setting', (name) => {
  expect(problemsOfEnvironment([name], SETTINGS)).toEqual([]);
});

it('warns of a mistyped name of each setting that no other program is likely to have', () => {
  const ofOthers = ['HOST', 'PORT'];
  const names = Object.keys(settings.shape);
  const silent = names.filter((name) => problemsOfEnvironment([`${name}S`], names).length === 0);
  expect(silent.sort()).toEqual(ofOthers);
});

it('a server that is named without DATABASE_URL is not used', () => {
  expect(problemsOfEnvironment(['PGHOST', 'PGPASSWORD'], SETTINGS)).toEqual([
    'The variable PGHOST has no effect without DATABASE_URL: the embedded Postgres is used',
  ]);
  for (const name of ['DATABASE_URL', 'DATABASE_URL_FILE']) {
    expect(problemsOfEnvironment(['PGHOST', name], SETTINGS)).toEqual([]);
  }
});
