// Usage: node store-plant.ts ID NAME [TAG]
import createClient from 'openapi-fetch';
import type { components, paths } from './plant-store.js';

type NewPlant = components['schemas']['NewPlant'];

const ATTEMPTS = 10;
const TIMEOUT_MS = 10_000;

function readPlant([id = '', name, tag, ...rest]: string[]): NewPlant {
  const isInteger = /^-?(0|[1-9]\d*)$/.test(id);
  if (!isInteger || !name || rest.length > 0)
    throw new Error('Usage: node store-plant.ts ID NAME [TAG]');
  return { id: BigInt(id), name, ...(tag !== undefined && { tag }) };
}

/** JSON.stringify refuses a bigint, and a number would be rounded above 2^53. */
function toJson({ id, ...plant }: NewPlant): string {
  return `{"id":${id},${JSON.stringify(plant).slice(1)}`;
}

function createPlantStore(baseUrl: string, token: string) {
  const headers = { Authorization: `Bearer ${token}` };
  return createClient<paths>({ baseUrl, headers, bodySerializer: toJson as never });
}

/** Returns undefined if no complete response arrived: the plant may be stored or not. */
async function send(client: ReturnType<typeof createPlantStore>, plant: NewPlant) {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    return await client.POST('/plants', { body: plant, signal });
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error('This is not a response of the Plant Store.');
    const { cause, message } = error as Error & { cause?: { code?: string } };
    console.error(`No response (${cause?.code ?? message}). Trying again …`);
    return undefined;
  }
}

/** Stores a plant. Each attempt sends the same plant, so it is stored only once. */
async function storePlant(client: ReturnType<typeof createPlantStore>, plant: NewPlant) {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const { data, error, response } = (await send(client, plant)) ?? {};
    if (data?.name === plant.name) return data;
    if (response && ![429, 502, 503, 504].includes(response.status)) {
      if (error?.error === 40006) throw new Error(`The id ${plant.id} is taken.`);
      throw new Error(error?.message ?? 'This is not a response of the Plant Store.');
    }
    const seconds = Number(response?.headers.get('Retry-After')) || 1;
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  }
  throw new Error('The Plant Store does not respond.');
}

try {
  const plant = readPlant(process.argv.slice(2));
  const token = process.env.PLANT_STORE_TOKEN;
  if (!token) throw new Error('Set PLANT_STORE_TOKEN to a token of the Plant Store.');
  const url = process.env.PLANT_STORE_URL ?? 'http://127.0.0.1:3000';
  console.log(await storePlant(createPlantStore(url, token), plant));
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
