import type { Logger } from 'pino';
import { workerConfig } from './cluster/worker-config.js';
import type { AppConfig, Config, DatabaseConfig } from './config/config.js';
import type { OpenDatabase } from './database/open-database.js';
import { prepareDatabase } from './database/prepare-database.js';
import { descriptorWarning } from './descriptor-limit.js';
import { STOP_SIGNALS } from './signals.js';
import { explainStartError } from './start-errors.js';
import { startTracing } from './tracing/tracing.js';

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
  // Released in reverse order: the app or its workers, then traces, then the database, which requests in flight need.
  const resources = new AsyncDisposableStack();
  resources.defer(() => database.close());
  const stopping = stopOnSignal(logger, () => resources.disposeAsync());
  try {
    await prepareDatabase(database.config, report);
    const token =
      database.config.isEmbedded === true ? await createToken(database.config) : undefined;
    const appConfig = { ...config, database: database.config };
    // With several workers, each of them has its part of the connections.
    const warning = descriptorWarning(workerConfig(appConfig, 1));
    if (warning !== undefined) logger.warn(warning);
    const run = config.workers === 1 ? runApp : runWorkers;
    const url = await run(appConfig, logger, resources);
    report(`The Plant Store listens on ${url}`);
    if (token !== undefined) report(welcome(url, token));
  } catch (error) {
    // A start that a signal ends may fail because its database is closed already.
    if (!stopping.aborted) throw error;
  }
}

async function createToken(config: DatabaseConfig): Promise<string> {
  const { withAccessTokens } = await import('./auth/with-access-tokens.js');
  return withAccessTokens(config, (tokens) => tokens.createDevelopmentToken());
}

/**
 * @param resources gets all that must be released when the service stops
 * @returns the URL
 */
async function runApp(
  config: AppConfig,
  logger: Logger,
  resources: AsyncDisposableStack,
): Promise<string> {
  const { endpoint } = config.tracing;
  if (endpoint !== undefined) resources.defer(await startTracing(endpoint, logger));
  const { createApp, listen } = await import('./app.js');
  const { stopApp } = await import('./shutdown.js');
  const app = await createApp(config, logger);
  const url = await listen(app, config.http);
  resources.defer(() => stopApp(app, config.http));
  return url;
}

/**
 * @param resources gets the workers, which must be stopped when the service stops
 * @returns the URL
 */
async function runWorkers(
  config: AppConfig,
  logger: Logger,
  resources: AsyncDisposableStack,
): Promise<string> {
  const { Workers } = await import('./cluster/workers.js');
  const workers = new Workers(config, logger);
  resources.defer(() => workers.stop());
  return workers.start();
}

/** A program between the terminal and the service may forward the signal that the terminal sent to both. */
const SAME_SIGNAL_MS = 100;

/**
 * The first signal stops the service gracefully, the second one at once. The first process of a container ignores a
 * signal without a handler.
 *
 * @returns aborted from the first signal on
 */
function stopOnSignal(logger: Logger, stop: () => Promise<void>): AbortSignal {
  const stopping = new AbortController();
  let first: { signal: NodeJS.Signals; time: number } | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    if (first !== undefined) {
      // A terminal that is closed sends SIGHUP several times: as the system, and as the shell.
      if (signal === 'SIGHUP') return;
      if (signal === first.signal && performance.now() - first.time < SAME_SIGNAL_MS) return;
      logger.warn(
        { signal },
        `The Plant Store ends at once: it received ${signal} while it was stopping.`,
      );
      process.exit(1);
    }
    first = { signal, time: performance.now() };
    stopping.abort();
    logger.info({ signal }, `The Plant Store stops: it received ${signal}.`);
    stop().then(
      () => {
        logger.info('The Plant Store has stopped.');
        process.exit(0);
      },
      (error: unknown) => {
        process.stderr.write(`${explainStartError(error)}\n`);
        process.exit(1);
      },
    );
  };
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  return stopping.signal;
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
