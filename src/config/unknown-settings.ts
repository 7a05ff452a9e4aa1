import { closest, distance } from 'fastest-levenshtein';

/** How the variables of one program begin, and those of them that a file `.env` may contain. */
interface Family {
  readonly prefix: string;
  readonly names: readonly string[];
}

/** The variables that the exporter of OpenTelemetry reads. The rest of its configuration is fixed in tracer-provider.ts. */
const OTLP = [
  'HEADERS',
  'TIMEOUT',
  'COMPRESSION',
  'CERTIFICATE',
  'CLIENT_CERTIFICATE',
  'CLIENT_KEY',
];

/** Variables for programs other than the service. One that nobody reads would have no effect, and nobody would notice. */
export const FAMILIES: readonly Family[] = [
  {
    // The variables of libpq that pg reads.
    prefix: 'PG',
    names: [
      ...['PGHOST', 'PGPORT', 'PGDATABASE', 'PGUSER', 'PGPASSFILE', 'PGOPTIONS', 'PGSSLMODE'],
      'PGSSLNEGOTIATION',
    ],
  },
  {
    prefix: 'OTEL_',
    names: OTLP.flatMap((name) => [
      `OTEL_EXPORTER_OTLP_${name}`,
      `OTEL_EXPORTER_OTLP_TRACES_${name}`,
    ]),
  },
  {
    // Node reads its other variables before this file.
    prefix: 'NODE_',
    names: ['NODE_TLS_REJECT_UNAUTHORIZED'],
  },
  {
    // https://docs.docker.com/compose/how-tos/environment-variables/envvars
    prefix: 'COMPOSE_',
    names: [
      ...['COMPOSE_ANSI', 'COMPOSE_BAKE', 'COMPOSE_CONVERT_WINDOWS_PATHS'],
      ...['COMPOSE_DISABLE_ENV_FILE', 'COMPOSE_ENV_FILES', 'COMPOSE_EXPERIMENTAL', 'COMPOSE_FILE'],
      ...['COMPOSE_IGNORE_ORPHANS', 'COMPOSE_MENU', 'COMPOSE_PARALLEL_LIMIT'],
      ...['COMPOSE_PATH_SEPARATOR', 'COMPOSE_PROFILES', 'COMPOSE_PROGRESS', 'COMPOSE_PROJECT_NAME'],
      ...['COMPOSE_REMOVE_ORPHANS', 'COMPOSE_STATUS_STDOUT'],
    ],
  },
  {
    // https://docs.docker.com/reference/cli/docker/#environment-variables
    prefix: 'DOCKER_',
    names: [
      ...['DOCKER_API_VERSION', 'DOCKER_BUILDKIT', 'DOCKER_CERT_PATH', 'DOCKER_CONFIG'],
      ...['DOCKER_CONTENT_TRUST', 'DOCKER_CONTENT_TRUST_SERVER', 'DOCKER_CONTEXT'],
      ...['DOCKER_CUSTOM_HEADERS', 'DOCKER_DEFAULT_PLATFORM', 'DOCKER_HIDE_LEGACY_COMMANDS'],
      ...['DOCKER_HOST', 'DOCKER_TLS', 'DOCKER_TLS_VERIFY'],
    ],
  },
];

/** Variables of the samples in examples/. */
const OF_SAMPLES = ['PLANT_STORE_TOKEN', 'PLANT_STORE_URL'];

/** Heroku and other platforms set it for the number of processes. */
const PROCESSES = 'WEB_CONCURRENCY';

/** Variables of docker-compose.yml, and the time zone, which Node reads. */
const OF_OTHERS = [
  ...['POSTGRES_PASSWORD', 'GRAFANA_PASSWORD', 'TZ', PROCESSES],
  ...OF_SAMPLES,
  ...FAMILIES.flatMap(({ names }) => names),
];

/** Variables of libpq that pg reads only in an address. */
const ONLY_IN_ADDRESS: Readonly<Record<string, string>> = {
  PGSSLROOTCERT: 'sslrootcert',
  PGSSLCERT: 'sslcert',
  PGSSLKEY: 'sslkey',
};

/** `./plant-store` sets it for its commands. */
const OF_THE_LAUNCHER = ['PLANT_STORE_CALLER_DIR'];

/** How the names of settings begin that no other program is likely to use. */
const OURS =
  /^(?:AUTH_FAILURES|BASE_URL|BODY_LIMIT|CORS_|DATABASE_|DATA_DIR|KEEP_ALIVE|LOG_LEVEL|MAX_CONNECTIONS|MAX_PENDING|METRICS_TOKEN|OIDC_|OTEL_EXPORTER_OTLP_TRACES_ENDPOINT|PLANT_STORE_|READINESS|REQUEST_TIMEOUT|SHUTDOWN|TRUSTED_PROX)/;

/** Variables that Kubernetes and Docker set for a service with a name such as "database". */
const OF_LINKS = /_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP)(?:_\w+)?)?)$/;

/** The variables for the address of a server. The service reads them only for the parts that `DATABASE_URL` lacks. */
const OF_A_SERVER = ['PGHOST', 'PGPORT', 'PGDATABASE', 'PGUSER'];

/** A name of this length or more that nearly is a setting is a mistake, whatever it begins with. */
const LONG_NAME = 8;

/** The share of the letters of a name that may be mistyped. A name with more different letters is another word. */
const MAX_DISTANCE = 0.4;

/** A beginning of this length or more belongs to one name. */
const LONG_BEGINNING = 6;

/** How variables begin that name a database for other programs. */
const OF_A_DATABASE = /^(?:DB|DATABASE|POSTGRES|POSTGRESQL)_/;

/** Letters that may differ in a short name, too: two that are swapped count as two. */
const SWAPPED_LETTERS = 2;

/**
 * @param names of the variables in a file `.env`
 * @param settings all names of settings
 * @returns a sentence for each variable that is not a setting, and that no other program reads
 */
export function problemsOfFile(
  path: string,
  names: readonly string[],
  settings: readonly string[],
): string[] {
  const unknown = names.filter((name) => !settings.includes(name) && !OF_OTHERS.includes(name));
  return unknown.map((name) => {
    const parameter = ONLY_IN_ADDRESS[name];
    if (parameter !== undefined) {
      return `${name} in ${path} is not read: add the parameter ${parameter} to DATABASE_URL`;
    }
    if (name.startsWith('NODE_') && !isMistyped(name, settings)) {
      return `${name} in ${path} is not read: Node.js reads it before this file, so set it in the environment`;
    }
    const family = FAMILIES.find(({ prefix }) => name.startsWith(prefix));
    return `${name} in ${path} is not a setting${hint(name, [...settings, ...(family?.names ?? [])], family)}`;
  });
}

/**
 * @param names of the variables in the environment, where most belong to other programs
 * @param settings all names of settings
 * @returns a sentence for each variable that has no effect, although it begins like a setting, nearly is one, or names a server
 */
export function problemsOfEnvironment(
  names: readonly string[],
  settings: readonly string[],
): string[] {
  const known = [...settings, ...OF_SAMPLES, ...OF_THE_LAUNCHER];
  const unknown = names
    .filter((name) => OURS.test(name) || isMistyped(name, settings))
    .filter((name) => !OF_LINKS.test(name) && !known.includes(name))
    .map((name) => `The variable ${name} is not a setting and has no effect${hint(name, known)}`);
  const hasServer = names.some((name) => ['DATABASE_URL', 'DATABASE_URL_FILE'].includes(name));
  const unused = hasServer ? [] : names.filter((name) => OF_A_SERVER.includes(name));
  return [
    ...unknown,
    ...names
      .filter((name) => name === PROCESSES)
      .map(
        (name) =>
          `The variable ${name} has no effect: the service is one process. For more, run more instances of it, as docs/scaling.md says.`,
      ),
    ...unused.map(
      (name) =>
        `The variable ${name} has no effect without DATABASE_URL: the embedded Postgres is used`,
    ),
  ];
}

function isMistyped(name: string, settings: readonly string[]): boolean {
  return settings.some(
    (setting) => setting.length >= LONG_NAME && distance(name, setting) <= SWAPPED_LETTERS,
  );
}

/** @param family of a program whose variables begin like the name, and are among `known` */
function hint(name: string, known: readonly string[], family?: Family): string {
  const nearest = nearestOf(name.toUpperCase(), known);
  if (nearest !== undefined) return `: did you mean ${nearest}?`;
  if (family === undefined) {
    return `: the nearest known name is ${closest(name, known)} (.env.example lists all settings)`;
  }
  const siblings = known.filter((sibling) => sibling.startsWith(family.prefix));
  return `, and has no effect: the nearest known name is ${closest(name, siblings)}`;
}

function nearestOf(name: string, known: readonly string[]): string | undefined {
  const begun =
    known.find((setting) => setting === name) ??
    known.find((setting) => setting === name.replace('_TRACES_', '_')) ??
    known.find((setting) => containsWords(setting, name)) ??
    known.find((setting) => name.length >= LONG_BEGINNING && setting.startsWith(name));
  if (begun !== undefined) return begun;
  const nearest = closest(name, known);
  const mistyped = Math.max(SWAPPED_LETTERS, MAX_DISTANCE * nearest.length);
  if (nearest.startsWith(name) || distance(name, nearest) <= mistyped) return nearest;
  if (OF_A_DATABASE.test(name)) return known.find((setting) => setting === 'DATABASE_URL');
  return known.find((setting) => name.endsWith(`_${setting}`));
}

/** Whether all words of the second name are in the first: DATABASE_SIZE in DATABASE_POOL_SIZE. */
function containsWords(setting: string, name: string): boolean {
  const words = setting.split('_');
  return name.split('_').every((word) => words.includes(word));
}
