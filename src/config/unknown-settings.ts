import { closest, distance } from 'fastest-levenshtein';

/** Variables that a file `.env` may have for programs other than the service: Docker Compose and the libraries. */
const OF_OTHERS =
  /^(?:(?:PG|OTEL_|NODE_|COMPOSE_|DOCKER_)[A-Z0-9_]+|POSTGRES_PASSWORD|GRAFANA_PASSWORD|TZ)$/;

/** Variables that commands read from the environment, and not from a file `.env`. */
const OF_COMMANDS = ['PLANT_STORE_TOKEN', 'PLANT_STORE_TOKEN_FILE', 'PLANT_STORE_URL'];

/** `./plant-store` sets it for its commands. */
const OF_THE_LAUNCHER = ['PLANT_STORE_CALLER_DIR'];

/** How the names of settings begin that no other program is likely to use. */
const OURS =
  /^(?:AUTH_FAILURES|BASE_URL|BODY_LIMIT|CORS_|DATABASE_|DATA_DIR|IDLE_TIMEOUT|KEEP_ALIVE|LOG_LEVEL|MAX_CONNECTIONS|MAX_PENDING|METRICS_TOKEN|OIDC_|PLANT_STORE_|READINESS|REQUEST_TIMEOUT|SHUTDOWN|TRUSTED_PROX|WEB_CONCURRENCY)/;

/** Variables that Kubernetes and Docker set for a service with a name such as "database". */
const OF_LINKS = /_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP)(?:_\w+)?)?)$/;

/** Where clients of Postgres connect. The service looks there only for what `DATABASE_URL` lacks. */
const OF_A_SERVER = ['PGHOST', 'PGPORT', 'PGDATABASE', 'PGUSER'];

/** A name of this length or more that nearly is a setting is a mistake, whatever it begins with. */
const LONG_NAME = 8;

/** The share of the letters of a name that may be mistyped. A name with more different letters is another word. */
const MAX_DISTANCE = 0.4;

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
  const unknown = names.filter((name) => !settings.includes(name));
  return unknown.flatMap((name) => {
    if (OF_COMMANDS.includes(name)) {
      return `${name} in ${path} is not read: set it in the environment of the command`;
    }
    const isOfOthers = OF_OTHERS.test(name) && !isMistyped(name, settings);
    return isOfOthers ? [] : `${name} in ${path} is not a setting${hint(name, settings)}`;
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
  const known = [...settings, ...OF_COMMANDS, ...OF_THE_LAUNCHER];
  const unknown = names
    .filter((name) => OURS.test(name) || isMistyped(name, settings))
    .filter((name) => !OF_LINKS.test(name) && !known.includes(name))
    .map((name) => `The variable ${name} is not a setting and has no effect${hint(name, known)}`);
  const hasServer = names.some((name) => ['DATABASE_URL', 'DATABASE_URL_FILE'].includes(name));
  const unused = hasServer ? [] : names.filter((name) => OF_A_SERVER.includes(name));
  return [
    ...unknown,
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

function hint(name: string, settings: readonly string[]): string {
  const upper = name.toUpperCase();
  const nearest =
    settings.find((setting) => setting === upper) ??
    settings.find((setting) => setting.startsWith(`${upper}_`)) ??
    closest(upper, settings);
  return nearest.startsWith(upper) ||
    distance(upper, nearest) <= Math.max(SWAPPED_LETTERS, MAX_DISTANCE * nearest.length)
    ? `: did you mean ${nearest}?`
    : ' (.env.example lists all settings)';
}
