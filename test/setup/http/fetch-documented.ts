import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { expectDocumented, UndocumentedError } from './documented.js';

/**
 * Sends a request to the service. ESLint forbids `fetch` itself in tests, so that no response stays unchecked.
 *
 * @throws UndocumentedError when the response is not as openapi.json says
 * @throws Error when there is no response, or it was cut off
 */
export async function fetchDocumented(url: string, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  await expectDocumented({
    status: response.status,
    header: (name) => response.headers.get(name),
    body: await response.clone().text(),
    request: `${init?.method ?? 'GET'} ${new URL(url).pathname}`,
  });
  return response;
}

/**
 * Reads a response that a client of `node:http` received.
 *
 * @param request such as `POST /plants`
 * @returns the body
 * @throws UndocumentedError when the response is not as openapi.json says
 * @throws Error when it was cut off
 */
export async function readDocumented(response: IncomingMessage, request: string): Promise<string> {
  const body = await text(response);
  await expectDocumented({
    status: response.statusCode!,
    header: (name) => response.headers[name.toLowerCase()]?.toString() ?? null,
    body,
    request,
  });
  return body;
}

/**
 * For the `catch` of a request that may get no response, such as one to a service that is killed.
 *
 * @throws UndocumentedError when there was a response that is not as openapi.json says
 */
export function noResponse(error: unknown): undefined {
  if (error instanceof UndocumentedError) throw error;
}
