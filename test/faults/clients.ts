import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { generator } from '../setup/model/random.js';
import type { History, Plant } from './history.js';
import { requestBodyOf, post } from './post.js';

/** Different plants that are sent under one id at the same time. */
const RIVALS = 3;

export interface Clients {
  /** Lets the clients end their requests, and sends no more. */
  stop(): Promise<void>;
}

/** Clients of a service, whose connections may be reset. */
export interface ServiceClients extends Clients {
  /** Resets all connections, so that responses in flight reach nobody. */
  resetConnections(): void;
  /** Ends the connections, and with them the requests. */
  close(): Promise<void>;
}

export interface ServiceLoad {
  readonly url: string;
  readonly token: string;
  /** Has the form of a token, and is none. */
  readonly wrongToken: string;
  /** Clients that send one plant after the other. */
  readonly clients: number;
  readonly pauseMs: number;
  /** After a failure, a client waits this long before its next request. */
  readonly backOffMs: number;
  readonly seed: number;
  readonly nextPlant: () => Plant;
}

/**
 * Sends new plants, some of them until there is a definite outcome, different plants under one id, a different plant
 * under the id of an acknowledged one, bodies that are not a plant, and a wrong token.
 */
export function startServiceClients(load: ServiceLoad, history: History): ServiceClients {
  const { url, token, wrongToken, nextPlant } = load;
  const agent = new Agent({ keepAlive: true });
  let isRunning = true;

  /** @returns whether the outcome is definite: neither an error of the service nor a lost connection */
  const send = async (
    plant: Plant,
    expected: readonly number[],
    { body = requestBodyOf(plant), bearer = token } = {},
  ): Promise<boolean> => {
    const outcome = await history.record(plant, expected, () =>
      post(url, bearer, agent, plant, body),
    );
    const isDefinite = outcome > 0 && outcome < 50000;
    await delay(isDefinite ? load.pauseMs : load.backOffMs);
    return isDefinite;
  };
  /** @returns whether there was a definite outcome before the load stopped */
  const repeat = async (plant: Plant, expected: readonly number[]): Promise<boolean> => {
    while (isRunning) if (await send(plant, expected)) return true;
    return false;
  };
  const rivalsOf = (plant: Plant) =>
    Array.from({ length: RIVALS }, (_, rival) => ({ ...plant, name: `rival ${rival}` }));

  const sendSome = async (choice: number): Promise<unknown> => {
    const plant = nextPlant();
    // Few enough to stay below the limit of wrong tokens.
    if (choice < 4) return send(plant, [40101], { bearer: wrongToken });
    if (choice < 50) return send(plant, [40005], { body: `{"id":${plant.id},"name":7}` });
    if (choice < 200) {
      return Promise.all(rivalsOf(plant).map((rival) => repeat(rival, [200, 40006])));
    }
    if (choice < 350) {
      // A plant that was lost would leave its id to the other one.
      return (await repeat(plant, [200])) && repeat({ ...plant, name: 'other' }, [40006]);
    }
    // Some are sent only once, so that it stays open whether they are stored.
    return choice < 700 ? repeat(plant, [200]) : send(plant, [200]);
  };
  const run = async (_: unknown, client: number) => {
    const random = generator(load.seed + client);
    while (isRunning) await sendSome(random(1000));
  };
  const running = Array.from({ length: load.clients }).map(run);
  const stop = async () => {
    isRunning = false;
    await Promise.all(running);
  };
  return {
    resetConnections() {
      const sockets = [agent.sockets, agent.freeSockets].flatMap((lists) => Object.values(lists));
      for (const socket of sockets.flat() as Socket[]) socket.resetAndDestroy();
    },
    stop,
    async close() {
      isRunning = false;
      agent.destroy();
      await stop();
    },
  };
}
