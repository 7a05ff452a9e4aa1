// Usage: node store-plant.js ID NAME [TAG]
const ATTEMPTS = 10;
const TIMEOUT_MS = 10_000;

function readPlant([id, name, tag, ...rest]) {
  const isInteger = /^-?(0|[1-9]\d*)$/.test(id);
  if (!isInteger || !name || rest.length > 0)
    throw new Error('Usage: node store-plant.js ID NAME [TAG]');
  return { id, name, tag };
}

/** The id stays text: as a number, it would be rounded above 2^53. */
function toJson({ id, ...plant }) {
  if (JSON.rawJSON) return JSON.stringify({ id: JSON.rawJSON(id), ...plant });
  // Node before 22, and browsers before 2025.
  return `{"id":${id},${JSON.stringify(plant).slice(1)}`;
}

/** Returns undefined if no complete response arrived: the plant may be stored or not. */
async function send(body, { url, token }) {
  try {
    const response = await fetch(`${url.replace(/\/$/, '')}/plants`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch (error) {
    console.error(`No response (${error.cause?.code ?? error.message}). Trying again …`);
    return undefined;
  }
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Stores a plant. Each attempt sends the same body, so the plant is stored only once. */
async function storePlant(plant, service) {
  const body = toJson(plant);
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const response = await send(body, service);
    if (response && ![429, 502, 503, 504].includes(response.status)) {
      const result = parseJson(response.text);
      if (response.status === 200 && result?.name === plant.name) return result;
      if (result?.error === 40006) throw new Error(`The id ${plant.id} is taken.`);
      const failure = `${response.status}: not a response of the Plant Store`;
      throw new Error(result?.message ?? failure);
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
  console.log(await storePlant(plant, { url, token }));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
