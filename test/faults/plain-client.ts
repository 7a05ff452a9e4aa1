import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { PLANT_FIELDS } from '../../src/plants/dto/plant.js';
import type { History, Outcome, Plant } from './history.js';
import type { Clients } from './clients.js';

const PAUSE_MS = 5;

/** The time limits are those of the service, so that their outages can be compared. */
const TIMEOUT_MS = 1500;

const INSERT = `INSERT INTO plants (${PLANT_FIELDS.join()}) VALUES (${PLANT_FIELDS.map((_, i) => `$${i + 1}`).join()})`;

/** A failure says nothing about a plain client, for which nothing is promised. */
const EXPECTED = [200, 0];

/**
 * Inserts plants as the simplest program would: one INSERT at a time, on a new connection after a failure.
 *
 * @param backOffMs the wait after a failure
 */
export function startPlainClient(
  url: string,
  nextPlant: () => Plant,
  history: History,
  backOffMs: number,
): Clients {
  let isRunning = true;
  let client: pg.Client | undefined;
  const insert = async (plant: Plant): Promise<Outcome> => {
    try {
      client ??= await connect(url);
      await client.query(
        INSERT,
        PLANT_FIELDS.map((field) => plant[field]),
      );
      return { outcome: 200 };
    } catch (error) {
      void client?.end().catch(() => undefined);
      client = undefined;
      const { code, message } = error as Error & { code?: string };
      return { outcome: 0, reason: code ?? message };
    }
  };
  const run = async () => {
    while (isRunning) {
      const plant = nextPlant();
      const outcome = await history.record(plant, EXPECTED, () => insert(plant));
      await delay(outcome === 200 ? PAUSE_MS : backOffMs);
    }
  };
  const running = run();
  return {
    async stop() {
      isRunning = false;
      await running;
      await client?.end();
      client = undefined;
    },
  };
}

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  });
  // A lost connection is also reported as an event, which would end the process without a listener.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
