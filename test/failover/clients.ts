import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { UndocumentedError } from '../setup/http/documented.js';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { plantOf, type History, type Outcome, type Plant } from './history.js';

/** After a failure, a client waits this long before its next request. */
const BACK_OFF_MS = 100;

/** Longer than any wait of the service, so that a response that takes longer is a fault. */
const RESPONSE_TIMEOUT_MS = 30_000;

/** The time limits of the plain client are those of the service, so that their outages can be compared. */
const PLAIN_TIMEOUT_MS = 1500;

export interface Clients {
  stop(): Promise<void>;
}

/** Where clients record what they are told. */
export interface Log {
  /** The first of a range of ids that no other clients use. */
  readonly firstId: bigint;
  readonly history: History;
  /** @returns seconds since the start of the load */
  readonly now: () => number;
}

interface Load {
  /** Clients that send one plant after the other. */
  readonly clients: number;
  readonly pauseMs: number;
  /** Whether a plant that was not acknowledged is sent until it is; otherwise the next one follows. */
  readonly repeats: (serial: bigint) => boolean;
}

const SERVICE_LOAD: Load = { clients: 8, pauseMs: 50, repeats: (serial) => serial % 2n === 0n };
const PLAIN_LOAD: Load = { clients: 1, pauseMs: 5, repeats: () => false };

/**
 * Sends plants to the service, half of them again and again until they are acknowledged, so that both new and repeated
 * plants meet every fault.
 */
export function startServiceClients(url: string, token: string, log: Log): Clients {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const send = async ({ id, name, tag }: Plant): Promise<Outcome> => {
    const rest = tag === null ? '' : `,"tag":"${tag}"`;
    const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
    const body = `{"id":${id},"name":"${name}"${rest}}`;
    try {
      const init = { method: 'POST', headers, body, signal };
      const response = await fetchDocumented(`${url}/plants`, init);
      const { error } = (await response.json()) as { error?: number };
      if (response.status === 200) return { kind: 'acknowledged', detail: '200' };
      const kind = response.status === 503 ? 'refused' : 'other';
      return { kind, detail: String(error ?? response.status) };
    } catch (error) {
      const { message } = error as Error;
      const isUndocumented = error instanceof UndocumentedError;
      return { kind: 'other', detail: isUndocumented ? message : `no response: ${message}` };
    }
  };
  return startClients(send, SERVICE_LOAD, log);
}

/** Inserts plants as the simplest program would: one INSERT at a time, on a new connection after a failure. */
export function startPlainClient(url: string, log: Log): Clients {
  let client: pg.Client | undefined;
  const send = async ({ id, name, tag }: Plant): Promise<Outcome> => {
    try {
      client ??= await connect(url);
      await client.query('INSERT INTO plants (id, name, tag) VALUES ($1, $2, $3)', [id, name, tag]);
      return { kind: 'acknowledged', detail: 'inserted' };
    } catch (error) {
      void client?.end().catch(() => undefined);
      client = undefined;
      const { code, message } = error as Error & { code?: string };
      return { kind: 'refused', detail: code ?? message };
    }
  };
  const clients = startClients(send, PLAIN_LOAD, log);
  return {
    async stop() {
      await clients.stop();
      await client?.end();
      client = undefined;
    },
  };
}

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: PLAIN_TIMEOUT_MS,
    query_timeout: PLAIN_TIMEOUT_MS,
  });
  // A lost connection is also reported as an event, which would end the process without a listener.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

function startClients(
  send: (plant: Plant) => Promise<Outcome>,
  load: Load,
  { firstId, history, now }: Log,
): Clients {
  let isRunning = true;
  let nextSerial = 0n;
  const run = async () => {
    while (isRunning) {
      const serial = nextSerial++;
      const plant = plantOf(String(firstId + serial));
      let isAcknowledged: boolean;
      do {
        const sentAt = now();
        const outcome = await send(plant);
        history.record(plant.id, outcome, sentAt, now());
        isAcknowledged = outcome.kind === 'acknowledged';
        await delay(isAcknowledged ? load.pauseMs : BACK_OFF_MS);
      } while (!isAcknowledged && isRunning && load.repeats(serial));
    }
  };
  const running = Array.from({ length: load.clients }, run);
  return {
    async stop() {
      isRunning = false;
      await Promise.all(running);
    },
  };
}
