import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { generator } from '../setup/model/random.js';
import { bodyOf, post, type Outcome, type Plant } from './post.js';

/** Clients that send one plant after the other. */
const CLIENTS = 16;

const PAUSE_MS = 20;

/** After a failure, a client waits this long before its next request. */
const BACK_OFF_MS = 50;

/** Different plants that are sent under one id at the same time. */
const RIVALS = 3;

/** An odd number: its multiples are different ids, all over int64. */
const ID_STEP = 0x9e3779b97f4a7c15n;

/** A request, with its outcome. */
export interface Sent extends Plant, Outcome {
  /** Outcomes that are right while nothing fails. */
  readonly expected: readonly number[];
  /** Seconds since the start of the load. */
  readonly sentAt: number;
  readonly endedAt: number;
}

export interface Load {
  readonly history: readonly Sent[];
  /** Times of acknowledgments, in seconds since the start of the load. */
  readonly acknowledgedAt: readonly number[];
  /** @returns seconds since the start of the load */
  now(): number;
  /** Resets all connections, so that responses in flight reach nobody. */
  resetConnections(): void;
  /** Lets the clients end their requests, and sends no more. */
  stop(): Promise<void>;
  /** Ends the connections, and with them the requests. */
  close(): Promise<void>;
}

/** @param wrongToken has the form of a token, and is none */
export function startLoad(url: string, token: string, wrongToken: string, seed: number): Load {
  const agent = new Agent({ keepAlive: true });
  const start = performance.now();
  const now = () => (performance.now() - start) / 1000;
  const history: Sent[] = [];
  const acknowledgedAt: number[] = [];
  let isRunning = true;
  let serial = 0n;

  const nextPlant = (): Plant => {
    const id = BigInt.asIntN(64, ++serial * ID_STEP).toString();
    const tag = [undefined, '', `tag ${id} 🌱`][Number(serial % 3n)];
    return { id, name: `plant ${id}`, ...(tag !== undefined && { tag }) };
  };
  /** @returns whether the outcome is definite: neither an error of the service nor a lost connection */
  const send = async (
    plant: Plant,
    expected: readonly number[],
    { body = bodyOf(plant), bearer = token } = {},
  ): Promise<boolean> => {
    const sentAt = now();
    const result = await post(url, bearer, agent, plant, body);
    const endedAt = now();
    history.push({ ...plant, ...result, expected, sentAt, endedAt });
    const { outcome } = result;
    if (outcome === 200) acknowledgedAt.push(endedAt);
    const isDefinite = outcome > 0 && outcome < 50000;
    await delay(isDefinite ? PAUSE_MS : BACK_OFF_MS);
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
    const random = generator(seed + client);
    while (isRunning) await sendSome(random(1000));
  };
  const running = Array.from({ length: CLIENTS }).map(run);
  const stop = async () => {
    isRunning = false;
    await Promise.all(running);
  };
  return {
    history,
    acknowledgedAt,
    now,
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
