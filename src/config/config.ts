import { resolve } from 'node:path';
import type { z } from 'zod';
import { ConfigError } from './config-error.js';
import { completeUrl } from './database-url.js';
import { loadEnvFile } from './env-file.js';
import { misspelledSettings, warningsAbout } from './misspelled-settings.js';
import { readSecrets } from './secrets.js';
import { SECRET_SETTINGS, settings } from './settings.js';

/** The settings, read once at the start. Times are milliseconds, sizes are bytes. */
export type Config = Readonly<z.output<typeof environment>>;

/** The settings of the database with its address, which is known once the embedded Postgres has started. */
export type DatabaseConfig = Config['database'] & {
  readonly url: string;
  /** Whether `url` leads to the embedded Postgres in `dataDir`. */
  readonly isEmbedded?: boolean;
};

/** The settings of the app, with the address of its database. */
export type AppConfig = Config & { readonly database: DatabaseConfig };

/** The name under which the parsed settings are injected. */
export const CONFIG = Symbol('config');

/** The keys of an issuer may be requested twice, for 3 s each. */
const MAX_ISSUER_WAIT_MS = 6000;

/** The names of all variables that are read. */
const NAMES: readonly string[] = [
  ...Object.keys(settings.shape),
  ...SECRET_SETTINGS.map((name) => `${name}_FILE`),
];

/** A rule about two variables, checked only if both are valid by themselves. */
const ruleFor = (name: string, other: string, message: string) => ({
  path: [name],
  message,
  when: ({ issues }: z.core.ParsePayload) =>
    !issues.some(({ path }) => path?.[0] === name || path?.[0] === other),
});

const environment = settings
  .refine(
    (env) => env.OIDC_ISSUER !== undefined || env.OIDC_AUDIENCE === undefined,
    ruleFor('OIDC_ISSUER', 'OIDC_AUDIENCE', 'must be set with OIDC_AUDIENCE'),
  )
  .refine(
    (env) => env.OIDC_AUDIENCE !== undefined || env.OIDC_ISSUER === undefined,
    ruleFor('OIDC_AUDIENCE', 'OIDC_ISSUER', 'must be set with OIDC_ISSUER'),
  )
  .transform((env) => ({
    http: {
      host: env.HOST,
      port: env.PORT,
      keepAliveTimeout: env.KEEP_ALIVE_TIMEOUT_MS,
      /**
       * How long a client may neither send nor read. Longer than it may wait for a response: for the keys of its token's
       * issuer, and then for steps in the database (docs/limits.md).
       */
      idleTimeout:
        Math.max(env.REQUEST_TIMEOUT_MS, MAX_ISSUER_WAIT_MS) + 6 * env.DATABASE_TIMEOUT_MS,
      // With 1,000, the service and its Postgres together could take more than 300 MB.
      maxConnections: env.MAX_CONNECTIONS ?? (env.DATABASE_URL === undefined ? 500 : 4000),
      bodyLimit: env.BODY_LIMIT,
      requestTimeout: env.REQUEST_TIMEOUT_MS,
      maxPendingRequests: env.MAX_PENDING_REQUESTS,
      readinessTolerance: env.READINESS_TOLERANCE_MS,
      shutdownDelay: env.SHUTDOWN_DELAY_MS,
      shutdownTimeout: env.SHUTDOWN_TIMEOUT_MS,
      trustedProxyHops: env.TRUSTED_PROXY_HOPS,
      /** Whose pages may read the responses; `*` for all. */
      corsOrigins: env.CORS_ORIGINS ?? [],
    },
    log: { level: env.LOG_LEVEL },
    tracing: { endpoint: env.OTEL_EXPORTER_OTLP_ENDPOINT },
    auth: {
      /** The hash of a token that reads /metrics even while the database cannot be reached. */
      metricsTokenHash: env.METRICS_TOKEN_SHA256,
      failuresPerMinute: env.AUTH_FAILURES_PER_MINUTE,
      /** undefined: only access tokens of the service are accepted. */
      oidc:
        env.OIDC_ISSUER !== undefined && env.OIDC_AUDIENCE !== undefined
          ? { issuer: env.OIDC_ISSUER, audience: env.OIDC_AUDIENCE }
          : undefined,
    },
    /** The address for clients; undefined: the one from which a client loaded the OpenAPI document. */
    baseUrl: env.BASE_URL,
    database: {
      /** undefined: the embedded Postgres in `dataDir`. */
      url: env.DATABASE_URL && completeUrl(env.DATABASE_URL, env),
      dataDir: resolve(env.DATA_DIR),
      poolSize: env.DATABASE_POOL_SIZE,
      /** undefined: chosen by batchLimits; the number of batches, too. */
      batchSize: env.DATABASE_BATCH_SIZE,
      batchesInFlight: env.DATABASE_BATCHES,
      timeout: env.DATABASE_TIMEOUT_MS,
      startTimeout: env.DATABASE_START_TIMEOUT_MS,
    },
    /** Only for what a start needs. Nothing else may depend on it: a service that behaves in another way in tests is not tested. */
    isProduction: env.NODE_ENV === 'production',
  }));

/**
 * @param env the variables, by default those of the process
 * @returns a sentence for each variable that an operator should know of
 */
export function settingWarnings(env = process.env): string[] {
  return warningsAbout(Object.keys(env), NAMES);
}

/**
 * Parses the settings. An empty variable counts as not set.
 *
 * @param env the variables, by default those of the process and of the file `.env`
 * @throws ConfigError that names every wrong variable and its valid values
 */
export function readConfig(env?: NodeJS.ProcessEnv): Config {
  const envFile = env === undefined ? loadEnvFile(NAMES) : undefined;
  const { values, files } = readSecrets(env ?? process.env, SECRET_SETTINGS);
  const set = Object.fromEntries(
    Object.entries(values).filter(
      // Variables for clients of other servers do not concern the embedded Postgres.
      ([name, value]) => value !== '' && (values['DATABASE_URL'] || !name.startsWith('PG')),
    ),
  );
  const result = environment.safeParse(set);
  if (!result.success) {
    throw new ConfigError(
      result.error.issues
        .map(({ path, message }) => {
          const name = path.join('.');
          const file = files.get(name) ?? envFile?.get(name);
          return `${file === undefined ? name : `${name} in ${file}`} ${message}`;
        })
        .join('; '),
    );
  }
  if (
    result.data.isProduction &&
    set['DATABASE_URL'] === undefined &&
    set['DATA_DIR'] === undefined
  ) {
    throw new ConfigError(
      [
        'DATABASE_URL must be set with NODE_ENV=production, or DATA_DIR to use an embedded Postgres in that folder',
        ...misspelledSettings(Object.keys(values), NAMES),
      ].join('; '),
    );
  }
  return Object.freeze(result.data);
}
