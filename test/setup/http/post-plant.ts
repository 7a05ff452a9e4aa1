import { fetchDocumented } from './fetch-documented.js';

/** Sends a body as JSON to `POST /plants`, as `fetchDocumented` does. */
export function postJson(
  url: string,
  token: string,
  body: string,
  signal: AbortSignal | null = null,
): Promise<Response> {
  return fetchDocumented(`${url}/plants`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body,
    signal,
  });
}

/** @param id a text if it is beyond 2^53, where a number is not exact */
export function postPlant(
  url: string,
  token: string,
  id: number | string,
  name = 'a',
): Promise<Response> {
  return postJson(url, token, `{"id":${id},"name":${JSON.stringify(name)}}`);
}

/** @returns 200, or the number of the error */
export async function outcomeOf(response: Response): Promise<number> {
  const { error } = (await response.json()) as { error?: number };
  return error ?? response.status;
}

/** Whether this plant is stored: another one with its id is refused, and a repetition of its request is acknowledged. */
export async function isStored(
  url: string,
  token: string,
  id: number | string,
  name = 'a',
): Promise<boolean> {
  const other = await postPlant(url, token, id, `not ${name}`);
  const same = await postPlant(url, token, id, name);
  return (await outcomeOf(other)) === 40006 && same.status === 200;
}
