import { readStoredPlants } from '../setup/database/stored-plants.js';
import { generateAccessToken } from '../../src/auth/access-token.js';
import type { Step } from './arbitrary-histories.js';
import { noResponse } from '../setup/http/fetch-documented.js';
import {
  contradictions,
  falseOutcomes,
  send,
  type Sent,
  type SentPlant,
} from '../setup/model/contradictions.js';
import { openConnection } from '../setup/http/raw-http.js';
import type { TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';
import { bytesOf } from './wire.js';
import { settled } from '../setup/time/settled.js';

/** More than the ids of one history. */
const IDS = 10;

/** Names of plants that must never be stored, and are not in the history. */
const UNAUTHORIZED = 'unauthorized';
const INCOMPLETE = 'incomplete';

let histories = 0;

/** What a history needs of a service. */
export interface PlayedService extends Pick<
  TestService,
  'url' | 'port' | 'token' | 'database' | 'proxy' | 'metric' | 'restart'
> {
  /** Ends the process of the service with SIGKILL at once, and starts it again on the same port. */
  kill?(): Promise<void>;
}

/**
 * Plays the steps, lets the clients send each plant again until it is acknowledged or refused, and compares the
 * responses with the rows.
 *
 * @returns a sentence for each contradiction
 */
export async function playHistory(
  service: PlayedService,
  steps: readonly Step[],
): Promise<readonly string[]> {
  // A statement of the last history may still run, whose client was cut off: so each has ids of its own.
  const firstId = ++histories * IDS;
  const history: Sent[] = [];
  const problems: string[] = [];
  const inFlight: Promise<unknown>[] = [];
  let restarting = Promise.resolve();

  const rowsOf = (first: number, count: number) =>
    readStoredPlants(service.database, 'WHERE id >= $1 AND id < $2', first, first + count);

  const request = async (plant: SentPlant) => {
    const sent = (await send(service, service.token, plant).catch(noResponse)) ?? {
      ...plant,
      outcome: 0,
    };
    history.push(sent);
    // A response is true when the client gets it, not only in the end.
    if (isFinal(sent.outcome)) problems.push(...falseOutcomes([sent], await rowsOf(sent.id, 1)));
    return sent;
  };
  const requestWithWrongToken = async (plant: SentPlant) => {
    const sent = await send(service, generateAccessToken(), plant).catch(noResponse);
    if (isFinal(sent?.outcome)) problems.push(`${plant.id}: a wrong token was accepted`);
  };

  for (const step of steps) {
    await pass(step.turns);
    switch (step.kind) {
      case 'send':
        inFlight.push(request(shifted(step.plant, firstId)));
        break;
      case 'unauthorized':
        inFlight.push(
          requestWithWrongToken({ ...shifted(step.plant, firstId), name: UNAUTHORIZED }),
        );
        break;
      case 'reset': {
        const isComplete = step.part >= 1;
        const plant = shifted(step.plant, firstId);
        if (isComplete) history.push({ ...plant, outcome: 0 });
        inFlight.push(
          sendAndReset(service, isComplete ? plant : { ...plant, name: INCOMPLETE }, step),
        );
        break;
      }
      case 'cut':
        // A service does not start without its database.
        await restarting;
        service.proxy.cut();
        break;
      case 'freeze':
        await restarting;
        service.proxy.freeze();
        break;
      case 'restore':
        service.proxy.restore();
        break;
      case 'restart':
        await restarting;
        service.proxy.restore();
        restarting = service.restart();
        break;
      case 'kill':
        await restarting;
        restarting = service.kill!();
        // After the kill, so that it also comes while the database does not respond.
        service.proxy.restore();
        break;
      case 'settle':
        service.proxy.restore();
        await Promise.all(inFlight.splice(0));
    }
  }
  service.proxy.restore();
  await Promise.all([restarting, ...inFlight]);
  for (const name of ['plant_store_pending_requests', 'plant_store_batch_waiting']) {
    await until(async () => (await service.metric(name)) === 0);
  }
  // As clients do that got no response, or 503.
  const undecided = history.filter(
    ({ outcome, name }) => !isFinal(outcome) && name !== UNAUTHORIZED,
  );
  for (const { outcome: _outcome, ...plant } of undecided) {
    await until(async () => isFinal((await request(plant)).outcome));
  }
  problems.push(...contradictions(history, await rowsOf(firstId, IDS)));
  return problems;
}

const isFinal = (outcome: number | undefined) => outcome === 200 || outcome === 40006;

const shifted = (plant: SentPlant, firstId: number): SentPlant => ({
  ...plant,
  id: plant.id + firstId,
});

async function pass(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await settled();
}

async function sendAndReset(
  { port, token }: PlayedService,
  plant: SentPlant,
  { part, after }: Extract<Step, { kind: 'reset' }>,
): Promise<void> {
  const bytes = bytesOf(token, { body: Buffer.from(JSON.stringify(plant)), chunks: undefined });
  const socket = await openConnection(port).catch(() => undefined);
  if (socket === undefined) return;
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => undefined);
  // The last byte is missing at least.
  socket.write(part >= 1 ? bytes : bytes.subarray(0, Math.floor(part * bytes.length)));
  await pass(after);
  socket.resetAndDestroy();
  await closed;
}
