import createClient from 'openapi-fetch';
import type { paths } from './plant-store.js';
const [id = '', name, tag, extra] = process.argv.slice(2);
if (!/^-?(0|[1-9]\d*)$/.test(id) || !name || extra) throw new Error('Usage: ID NAME [TAG]');
const { PLANT_STORE_URL: baseUrl = 'http://127.0.0.1:3000', PLANT_STORE_TOKEN } = process.env;
if (!PLANT_STORE_TOKEN) throw new Error('Set PLANT_STORE_TOKEN to a token of the Plant Store.');
const headers = { authorization: `Bearer ${PLANT_STORE_TOKEN}` };
const bodySerializer = ({ id, ...plant }: any) => `{"id":${id},${JSON.stringify(plant).slice(1)}`; // A number would round the id.
const client = createClient<paths>({ baseUrl, headers, bodySerializer });
const lost = (e: Error) => (e instanceof SyntaxError ? Promise.reject(Error('No JSON.')) : null);
for (let attempt = 1; attempt <= 10; attempt++) {
  const request = { body: { id: BigInt(id), name, tag }, signal: AbortSignal.timeout(1e4) };
  const { data, error, response } = (await client.POST('/plants', request).catch(lost)) ?? {}; // After a time-out, the same plant again, never another id.
  if (data?.name === name) process.exit();
  const failure = error?.error === 40006 ? 'The id is taken.' : error?.message;
  if (![undefined, 429, 503].includes(response?.status)) throw new Error(failure ?? 'No plant.');
  const seconds = Number(response?.headers.get('retry-after')) || 1;
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
throw new Error('The Plant Store does not respond.');
