import type { NestExpressApplication } from '@nestjs/platform-express';
import { createApp, listen } from '../../../src/app.js';
import { Registry } from 'prom-client';
import { AccessTokensService } from '../../../src/auth/access-tokens.service.js';
import { readConfig } from '../../../src/config/config.js';
import { prepareDatabase } from '../../../src/database/prepare-database.js';
import { untilIdle } from './clean-state.js';
import { startDatabaseProxy, type DatabaseProxy } from '../database/database-proxy.js';
import { PATIENT } from '../database/patient.js';
import { openTestDatabase, type TestDatabase } from '../database/database.js';
import { readStoredPlants, type StoredPlant } from '../database/stored-plants.js';
import { fetchDocumented } from '../http/fetch-documented.js';
import { stopApp } from '../../../src/shutdown.js';

/** A response, with its body read and JSON parsed. */
export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/**
 * The service as production runs it, on a database and a port of its own, in the process of the test. `startOn` starts one in a
 * process of its own.
 */
export interface TestService {
  readonly app: NestExpressApplication;
  readonly url: string;
  readonly port: number;
  readonly token: string;
  /** The database, which the test reaches without the proxy. */
  readonly database: TestDatabase;
  /** The proxy between the service and the database. */
  readonly proxy: DatabaseProxy;
  /** Sends `body`, unchanged, to POST /plants with a valid token. */
  post(body: string | Buffer, headers?: Record<string, string>): Promise<TestResponse>;
  /** Sends any request, without a token. Every response must be as the document says. */
  request(path: string, init?: RequestInit): Promise<TestResponse>;
  /** The value of a metric that has no labels. */
  metric(name: string): Promise<number>;
  /** All rows, in the order of their ids. */
  storedPlants(): Promise<StoredPlant[]>;
  /** Stops the service, without time for the requests in flight, and starts it again on the same port. */
  restart(): Promise<void>;
  /**
   * Stops the service.
   *
   * @throws Error when the service still holds what a request took
   */
  close(): Promise<void>;
}

/** @param env settings that differ from the defaults and from `PATIENT`, as an operator would set them */
export async function startService(env: Record<string, string> = {}): Promise<TestService> {
  const database = await openTestDatabase();
  const proxy = await startDatabaseProxy(database.url);
  const config = readConfig({
    PORT: '0',
    LOG_LEVEL: 'silent',
    DATABASE_URL: proxy.url,
    ...PATIENT,
    ...env,
  });
  const databaseConfig = { ...config.database, url: config.database.url! };
  await prepareDatabase(databaseConfig, () => undefined);
  const create = () => createApp({ ...config, database: databaseConfig });
  let app = await create();
  const url = await listen(app, config.http);
  const port = Number(new URL(url).port);
  const { token } = await app.get(AccessTokensService).create('test');

  const request = async (path: string, init?: RequestInit): Promise<TestResponse> => {
    const response = await fetchDocumented(url + path, init);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    return {
      status: response.status,
      headers: response.headers,
      body: isJson && text !== '' ? (JSON.parse(text) as unknown) : text,
    };
  };

  const stop = () => stopApp(app, { shutdownDelay: 0, shutdownTimeout: 0 });

  return {
    get app() {
      return app;
    },
    url,
    port,
    token,
    database,
    proxy,
    post: (body, headers = {}) =>
      request('/plants', {
        method: 'POST',
        body,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          ...headers,
        },
      }),
    request,
    async metric(name) {
      const { values } = await app.get(Registry).getSingleMetric(name)!.get();
      return values[0]!.value;
    },
    storedPlants: () => readStoredPlants(database, 'ORDER BY plants.id'),
    async restart() {
      await stop();
      app = await create();
      await listen(app, { ...config.http, port });
    },
    async close() {
      proxy.restore();
      await untilIdle(app).finally(async () => {
        await stop();
        await proxy.close();
        await database.close();
      });
    },
  };
}
