import type { Logger } from 'pino';
import { workerConfig } from './cluster/worker-config.js';
import type { AppConfig, DatabaseConfig } from './config/config.js';
import { prepareDatabase } from './database/prepare-database.js';
import { descriptorWarning } from './descriptor-limit.js';
import { startTracing } from './tracing/tracing.js';

// Nest is imported lazily: the primary of several workers then takes 80 MB of memory instead of 145.

/**
 * Brings the schema up to date and starts the service, in this process or in workers.
 *
 * @param report takes the messages for the operator
 * @param resources gets all that must be released when the service stops
 * @returns when the service listens
 * @throws an error that `explainStartError` explains, when the service cannot start
 */
export async function serve(
  config: AppConfig,
  logger: Logger,
  report: (text: string) => void,
  resources: AsyncDisposableStack,
): Promise<void> {
  const { database } = config;
  await prepareDatabase(database, report);
  // With several workers, each of them has its part of the connections.
  const warning = descriptorWarning(workerConfig(config, 1));
  if (warning !== undefined) logger.warn(warning);
  const run = config.workers === 1 ? runApp : runWorkers;
  const [url, token] = await Promise.all([
    run(config, logger, resources),
    database.isEmbedded === true ? findToken(database, logger) : undefined,
  ]);
  report(`The Plant Store listens on ${url}`);
  if (token !== undefined) report(welcome(url, token));
  else if (process.stdout.isTTY) report(hints(url));
}

async function findToken(config: DatabaseConfig, logger: Logger): Promise<string> {
  const { withAccessTokens } = await import('./auth/with-access-tokens.js');
  const { findDevelopmentToken } = await import('./auth/development-token.js');
  return withAccessTokens(config, (tokens) => findDevelopmentToken(tokens, config.dataDir, logger));
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

/** For a person who starts the service with a database of their own. */
function hints(url: string): string {
  return `Swagger UI is at ${url}/docs. To create a token: ./plant-store token create NAME`;
}

function welcome(url: string, token: string): string {
  return `
  Swagger UI   ${url}/docs
  Token        ${token}
               for development; to replace it: ./plant-store token rotate development

Store a plant:

curl -X POST ${url}/plants -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"id": 1649503004888048, "name": "Equisetum fluviatile", "tag": "Equisetum"}'
`;
}
