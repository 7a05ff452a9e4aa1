// Starts the service: settings, database, schema, app.

import type { Logger } from 'pino';
import { readConfig, settingWarnings, type DatabaseConfig } from './config/config.js';
import { version } from './config/version.js';
import { openDatabase } from './database/open-database.js';
import { tryAddress } from './http/try-address.js';
import { createLogger } from './logging/logger.js';
import { stopOnSignal } from './stop-on-signal.js';
import { startTracing } from './tracing/tracing.js';

/** Starts the service. When that fails, it prints why, and ends the process with exit code 1. */
export async function start(): Promise<void> {
  await openAndServe().catch(async (error: unknown) => {
    const { explainStartError } = await import('./start-errors.js');
    process.stderr.write(`${explainStartError(error)}\n`);
    process.exit(1);
  });
}

async function openAndServe(): Promise<void> {
  const config = readConfig();
  const isEmbedded = config.database.url === undefined;
  const logger = createLogger(config.log);
  logger.info(`The Plant Store ${version} starts.`);
  for (const problem of settingWarnings()) logger.warn(problem);
  // The embedded database is for a person at a terminal; on a server, programs read the log.
  const report = isEmbedded ? writeForPerson : (text: string) => logger.info(text);
  // A taken address is reported before the database is opened. If another program takes it later, `listen` fails.
  await tryAddress(config.http.host, config.http.port);
  if (isEmbedded && config.isProduction) {
    logger.warn(
      `DATABASE_URL is not set: plants are stored in an embedded Postgres in ${config.database.dataDir}. Keep this folder (in a container, with a volume), or set DATABASE_URL or DATABASE_URL_FILE to use a Postgres server.`,
    );
  }
  // Released in reverse order: the app, then traces, then the database, which requests in flight need.
  const resources = new AsyncDisposableStack();
  let closing: Promise<void> | undefined;
  // Once: a second release would resolve before the first one is done.
  const close = () => (closing ??= resources.disposeAsync());
  const stopping = stopOnSignal(logger, close);
  // After the handlers of signals are there, because a person or a program may send one when this line appears.
  if (isEmbedded) report(`Opening the embedded Postgres in ${config.database.dataDir} …`);
  try {
    const [database, { prepareDatabase }, { createApp, listen }, { stopApp }] = await Promise.all([
      openDatabase(config.database, (text) => logger.warn(text)),
      // Not imported before: TypeORM and Nest take a second to load, and a start with a wrong setting does not need them.
      import('./database/prepare-database.js'),
      import('./app.js'),
      import('./shutdown.js'),
    ]);
    resources.defer(() => database.close());
    void database.failed?.then(async (reason) => {
      if (stopping.aborted) return;
      // Not started again by this process: that is the job of what supervises it, or of the person who started it.
      logger.error(`The Plant Store ends: ${reason}`);
      await close();
      process.exit(1);
    });
    // After a signal, nobody needs to know what the start waits for.
    const reportUnlessStopped = (text: string) => {
      if (!stopping.aborted) report(text);
    };
    await prepareDatabase(database.config, reportUnlessStopped);
    const serve = async () => {
      const { endpoint } = config.tracing;
      if (endpoint !== undefined) resources.defer(await startTracing(endpoint, logger));
      const app = await createApp({ ...config, database: database.config }, logger);
      const url = await listen(app, config.http);
      resources.defer(() => stopApp(app, config.http));
      return url;
    };
    const [url, token] = await Promise.all([
      serve(),
      isEmbedded ? findToken(database.config, logger) : undefined,
    ]);
    reportUnlessStopped(`The Plant Store listens on ${url}`);
    if (token !== undefined) reportUnlessStopped(welcome(url, token));
    else if (process.stdout.isTTY) reportUnlessStopped(hints(url));
  } catch (error) {
    // A start that a signal ends may fail because its database is closed already.
    if (stopping.aborted) return;
    await close();
    throw error;
  }
}

/** If standard output is not a terminal, it carries the JSON log, so this text goes to standard error. */
function writeForPerson(text: string): void {
  const stream = process.stdout.isTTY ? process.stdout : process.stderr;
  stream.write(`${text}\n`);
}

async function findToken(config: DatabaseConfig, logger: Logger): Promise<string> {
  const { withAccessTokens } = await import('./auth/with-access-tokens.js');
  const { findDevelopmentToken } = await import('./auth/development-token.js');
  return withAccessTokens(config, (tokens) => findDevelopmentToken(tokens, config.dataDir, logger));
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
