import type { Logger } from 'pino';
import type { AppConfig, Config, DatabaseConfig } from './config/config.js';
import type { OpenDatabase } from './database/open-database.js';
import { prepareDatabase } from './database/prepare-database.js';
import { explainStartError } from './start-errors.js';
import { startTracing } from './tracing/tracing.js';

/** A service that listens. */
interface Running {
  readonly url: string;
  stop(): Promise<void>;
}

// Nest is imported lazily: the primary of several workers then takes 80 MB of memory instead of 145.

/**
 * Brings the schema up to date and starts the service, in this process or in workers. A signal stops it, also while it
 * waits for the database.
 *
 * @param report takes the messages for the operator
 * @returns when the service listens
 * @throws an error that `explainStartError` explains, when the service cannot start
 */
export async function serve(
  config: Config,
  database: OpenDatabase,
  logger: Logger,
  report: (text: string) => void,
): Promise<void> {
  let stop = () => database.close();
  stopOnSignal(() => stop());
  await prepareDatabase(database.config, report);
  const token =
    database.config.isEmbedded === true ? await createToken(database.config) : undefined;
  const run = config.workers === 1 ? runApp : runWorkers;
  const running = await run({ ...config, database: database.config }, logger);
  stop = async () => {
    await running.stop();
    await database.close();
  };
  report(`The Plant Store listens on ${running.url}`);
  if (token !== undefined) report(welcome(running.url, token));
}

async function createToken(config: DatabaseConfig): Promise<string> {
  const { withAccessTokens } = await import('./cli/database.js');
  return withAccessTokens(config, (tokens) => tokens.createDevelopmentToken());
}

async function runApp(config: AppConfig, logger: Logger): Promise<Running> {
  const { endpoint } = config.tracing;
  const stopTracing = endpoint === undefined ? undefined : await startTracing(endpoint);
  const { createApp, listen } = await import('./app.js');
  const { stopApp } = await import('./shutdown.js');
  const app = await createApp(config, logger);
  const url = await listen(app, config.http);
  return {
    url,
    async stop() {
      await stopApp(app, config.http);
      await stopTracing?.();
    },
  };
}

async function runWorkers(config: AppConfig, logger: Logger): Promise<Running> {
  const { Workers } = await import('./cluster/workers.js');
  const workers = new Workers(config, logger);
  return { url: await workers.start(), stop: () => workers.stop() };
}

/**
 * The first signal stops the service gracefully, the second one at once. The first process of a container ignores a
 * signal without a handler.
 */
function stopOnSignal(stop: () => Promise<void>): void {
  let isStopping = false;
  const onSignal = () => {
    if (isStopping) process.exit(1);
    isStopping = true;
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        process.stderr.write(`${explainStartError(error)}\n`);
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

function welcome(url: string, token: string): string {
  return `
  Swagger UI   ${url}/docs
  Token        ${token}
               for development; every start makes a new one

Store a plant:

curl -X POST ${url}/plants -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"id": 1649503004888048, "name": "Equisetum fluviatile", "tag": "Equisetum"}'
`;
}
