import { once } from 'node:events';
import { request, type Agent, type IncomingMessage } from 'node:http';
import { UndocumentedError } from '../setup/http/documented.js';
import { readDocumented } from '../setup/http/fetch-documented.js';
import { TEXT_FIELDS } from '../../src/plants/dto/plant.js';
import { UNDOCUMENTED, type Outcome, type Plant } from './history.js';

/** Longer than any wait of the service, so that a response that takes longer is a fault. */
const TIMEOUT_MS = 30_000;

/** @returns JSON, with the exact id */
export function requestBodyOf({ id, ...rest }: Plant): string {
  return `{"id":${id},${JSON.stringify(rest).slice(1)}`;
}

/** Sends a body to `POST /plants`. */
export async function post(
  url: string,
  token: string,
  agent: Agent,
  plant: Plant,
  body: string,
): Promise<Outcome> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const sent = request(`${url}/plants`, { method: 'POST', agent, headers, signal });
  // A connection may also be lost during the response, which is when its reader gets the error.
  sent.on('error', () => undefined).end(body);
  try {
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return checkResponse(
      response.statusCode!,
      await readDocumented(response, 'POST /plants'),
      plant,
    );
  } catch (error) {
    if (error instanceof UndocumentedError) return undocumented(error.message);
    if (signal.aborted) return undocumented(`no response within ${TIMEOUT_MS / 1000} seconds`);
    const { code, message } = error as NodeJS.ErrnoException;
    return { outcome: 0, reason: code ?? message };
  }
}

/** @param received a body that is as openapi.json says; a 200 must have the plant that was sent */
function checkResponse(status: number, received: string, plant: Plant): Outcome {
  if (status !== 200) return { outcome: (JSON.parse(received) as { error: number }).error };
  if (received === JSON.stringify(plant, TEXT_FIELDS)) return { outcome: 200 };
  return undocumented(`200 with another plant: ${received}`);
}

const undocumented = (reason: string): Outcome => ({ outcome: UNDOCUMENTED, reason });
