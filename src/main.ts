import { createApp, listen, stopApp } from './app.js';
import { AccessTokensService } from './auth/access-tokens.service.js';
import { readConfig } from './config/config.js';
import { openDatabase } from './database/open-database.js';
import { prepareDatabase } from './database/prepare-database.js';
import { createLogger } from './logging/logger.js';
import { startTracing } from './logging/tracing.js';
import { explainStartError } from './start-errors.js';

async function start(): Promise<void> {
  const config = readConfig();
  const isEmbedded = config.database.url === undefined;
  const logger = createLogger(config.log);
  // On the embedded database there is a person in front of it; a log is for programs.
  const say = isEmbedded ? print : (text: string) => logger.info(text);
  const stopTracing =
    config.tracing.endpoint === undefined ? undefined : await startTracing(config.tracing.endpoint);
  if (isEmbedded) {
    say(`Opening the embedded Postgres in ${config.database.dataDir} …`);
  }
  const database = await openDatabase(config.database);
  try {
    await prepareDatabase(database.config, say);
    const app = await createApp({ ...config, database: database.config }, logger);
    const url = await listen(app, config.http);
    stopOnSignal(async () => {
      await stopApp(app, config.http);
      await database.close();
      await stopTracing?.();
    });
    say(`The Plant Store listens on ${url}`);
    if (isEmbedded) {
      say(welcome(url, await app.get(AccessTokensService).createDevelopmentToken()));
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

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function exitWith(error: unknown): never {
  process.stderr.write(`${explainStartError(error)}\n`);
  process.exit(1);
}

await start().catch(exitWith);
