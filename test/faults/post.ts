import { request, type Agent } from 'node:http';
import { text } from 'node:stream/consumers';
import type { SentPlant } from '../setup/history.js';

/** Longer than any wait of the service, so that a response that takes longer is a fault. */
const TIMEOUT_MS = 30_000;

/** A response that no client could understand. */
export const UNDOCUMENTED = -1;

/** A plant whose id may be any int64, as decimal digits. */
export type Plant = Omit<SentPlant, 'id'> & { readonly id: string };

/** @returns JSON, with the exact id */
export function bodyOf({ id, ...rest }: Plant): string {
  return `{"id":${id},${JSON.stringify(rest).slice(1)}`;
}

/**
 * Sends a body to `POST /plants`.
 *
 * @returns 200, the number of an error, 0 for a connection that was lost, or UNDOCUMENTED
 */
export function post(
  url: string,
  token: string,
  agent: Agent,
  plant: Plant,
  body: string,
): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  return new Promise((resolve) => {
    const noResponse = () => resolve(signal.aborted ? UNDOCUMENTED : 0);
    request(`${url}/plants`, { method: 'POST', agent, headers, signal }, (response) => {
      text(response).then((received) => {
        resolve(outcomeOf(response.statusCode!, received, plant));
      }, noResponse);
    })
      .on('error', noResponse)
      .end(body);
  });
}

function outcomeOf(status: number, received: string, { name, tag }: Plant): number {
  if (status === 200) {
    const expected = tag === undefined ? { name } : { name, tag };
    return received === JSON.stringify(expected) ? 200 : UNDOCUMENTED;
  }
  try {
    const { error, message } = JSON.parse(received) as { error: number; message: string };
    const isDocumented = Math.floor(error / 100) === status && message !== '';
    return isDocumented ? error : UNDOCUMENTED;
  } catch {
    return UNDOCUMENTED;
  }
}
