import { startServiceClients } from './clients.js';
import { History, type Plant } from './history.js';
import { startPlainClient } from './plain-client.js';
import type { Rig } from './rig.js';
import { OPTIONAL_FIELDS, present, recordOf } from '../setup/model/plant.js';

/** After a failure, a client waits this long before its next request. */
const BACK_OFF_MS = 50;

/** An odd number: its multiples are different ids, all over int64. */
const ID_STEP = 0x9e3779b97f4a7c15n;

/** Clients of all services, and the plain clients beside them. */
export interface AllClients {
  readonly histories: readonly History[];
  /** @returns seconds since the start of the load */
  now(): number;
  /** @returns how many plants were acknowledged so far */
  acknowledged(): number;
  /** Resets all connections of the services' clients, so that responses in flight reach nobody. */
  readonly resetConnections: () => void;
  /** Lets the clients end their requests, and sends no more. */
  stop(): Promise<void>;
  /** Ends the connections, and with them the requests. */
  close(): Promise<void>;
}

/** @param wrongToken has the form of a token, and is none */
export function startClients(
  { services, plainDatabases, load }: Pick<Rig, 'services' | 'plainDatabases' | 'load'>,
  token: string,
  wrongToken: string,
  seed: number,
): AllClients {
  const start = performance.now();
  const now = () => (performance.now() - start) / 1000;
  let serial = 0n;
  const nextPlant = (): Plant => {
    const id = BigInt.asIntN(64, ++serial * ID_STEP).toString();
    // All combinations of what the optional fields may be.
    let rest = serial;
    const fields = recordOf(OPTIONAL_FIELDS, (field) => {
      const text = [undefined, '', `${field} ${id} 🌱`][Number(rest % 3n)];
      rest /= 3n;
      return text;
    });
    return { id, name: `plant ${id}`, ...present(fields) };
  };
  const histories: History[] = [];
  const historyOf = (label: string) => {
    const history = new History(label, now);
    histories.push(history);
    return history;
  };

  const common = { ...load, token, wrongToken, nextPlant, backOffMs: BACK_OFF_MS };
  const clients = services.map(({ url, label }, index) => {
    // Each client makes other choices.
    const ownSeed = seed + index * load.clients;
    return startServiceClients({ ...common, url, seed: ownSeed }, historyOf(label));
  });
  const plainClients = plainDatabases.map(({ url, label }) =>
    startPlainClient(url, nextPlant, historyOf(label), BACK_OFF_MS),
  );
  return {
    histories,
    now,
    acknowledged: () =>
      histories.reduce((sum, { acknowledgedAt }) => sum + acknowledgedAt.length, 0),
    resetConnections() {
      for (const each of clients) each.resetConnections();
    },
    async stop() {
      await Promise.all([...clients, ...plainClients].map((each) => each.stop()));
    },
    async close() {
      await Promise.all([
        ...clients.map((each) => each.close()),
        ...plainClients.map((each) => each.stop()),
      ]);
    },
  };
}
