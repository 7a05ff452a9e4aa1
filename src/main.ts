import './v8-flags.js';
import { createApp, listen } from './app.js';
import { withAccessTokens } from './cli/database.js';
import { Workers } from './cluster/workers.js';
import { readConfig } from './config/config.js';
import { openDatabase } from './database/open-database.js';
import { prepareDatabase } from './database/prepare-database.js';
import { StartError } from './errors/start-error.js';
import { tryAddress } from './http/try-address.js';
import { createLogger } from './logging/logger.js';
import { startTracing } from './tracing/tracing.js';
import { explainStartError } from './start-errors.js';
import { stopApp } from './shutdown.js';

async function start(): Promise<void> {
  const config = readConfig();
  if (config.workers > 1 && process.platform !== 'linux') {
    throw new StartError(
      'WEB_CONCURRENCY must be 1 on this system: only on Linux can several processes share an address.',
    );
  }
  const isEmbedded = config.database.url === undefined;
  const logger = createLogger(config.log);
  // On the embedded database there is a person in front of it; a log is for programs.
  const say = isEmbedded ? tellPerson : (text: string) => logger.info(text);
  // Before the database is opened and migrated; whether the address is still free, `listen` tells.
  await tryAddress(config.http.host, config.http.port);
  if (isEmbedded) {
    say(`Opening the embedded Postgres in ${config.database.dataDir} …`);
  }
  const database = await openDatabase(config.database);
  try {
    await prepareDatabase(database.config, say);
    const token = isEmbedded
      ? await withAccessTokens(database.config, (tokens) => tokens.createDevelopmentToken())
      : undefined;
    const announce = (url: string) => {
      say(`The Plant Store listens on ${url}`);
      if (token !== undefined) say(welcome(url, token));
    };
    const appConfig = { ...config, database: database.config };
    if (config.workers === 1) {
      const { endpoint } = config.tracing;
      const stopTracing = endpoint === undefined ? undefined : await startTracing(endpoint);
      const app = await createApp(appConfig, logger);
      const url = await listen(app, config.http);
      stopOnSignal(async () => {
        await stopApp(app, config.http);
        await database.close();
        await stopTracing?.();
      });
      announce(url);
    } else {
      const workers = new Workers(appConfig, logger);
      stopOnSignal(async () => {
        await workers.stop();
        await database.close();
      });
      announce(await workers.start());
    }
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** The first signal stops the service in good order, the second one at once. */
function stopOnSignal(stop: () => Promise<void>): void {
  let isStopping = false;
  const onSignal = () => {
    if (isStopping) process.exit(1);
    isStopping = true;
    stop().then(() => process.exit(0), exitWith);
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

/** Standard output that is no terminal carries the log, which programs read as JSON. */
function tellPerson(text: string): void {
  const stream = process.stdout.isTTY ? process.stdout : process.stderr;
  stream.write(`${text}\n`);
}

function exitWith(error: unknown): never {
  process.stderr.write(`${explainStartError(error)}\n`);
  process.exit(1);
}

await start().catch(exitWith);
