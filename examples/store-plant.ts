import createClient from 'openapi-fetch';
import type { paths } from './plant-store.js';
const { rawJSON } = JSON as unknown as { rawJSON(id: bigint): unknown }; // TypeScript 6 lacks its type.
const exact = (_: string, value: unknown) => (typeof value === 'bigint' ? rawJSON(value) : value);
const client = createClient<paths>({
  baseUrl: process.env.PLANT_STORE_URL ?? 'http://127.0.0.1:3000',
  headers: { authorization: `Bearer ${process.env.PLANT_STORE_TOKEN}` },
  bodySerializer: (body) => JSON.stringify(body, exact),
});
const [id = '', name = '', tag] = process.argv.slice(2);
for (let attempt = 1; attempt <= 10; attempt++) {
  const request = { body: { id: BigInt(id || '?'), name, tag }, signal: AbortSignal.timeout(1e4) };
  const result = await client.POST('/plants', request).catch(() => undefined);
  if (result?.data) process.exit();
  if (result?.error && ![429, 503].includes(result.response.status))
    throw new Error(result.error.error === 40006 ? 'The id is taken.' : result.error.message);
  const seconds = Number(result?.response.headers.get('retry-after') ?? 1);
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
throw new Error('The Plant Store does not respond.');
