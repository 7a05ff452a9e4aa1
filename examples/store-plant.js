const [id, name, tag, extra] = process.argv.slice(2);
if (!/^-?(0|[1-9]\d*)$/.test(id) || !name || extra) throw new Error('Usage: ID NAME [TAG]');
const { PLANT_STORE_URL: url = 'http://127.0.0.1:3000', PLANT_STORE_TOKEN: token } = process.env;
if (!token) throw new Error('Set PLANT_STORE_TOKEN to a token of the Plant Store.');
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
const plant = { id: JSON.rawJSON?.(BigInt(id)), name, tag }; // A number would round the id. Where JSON.rawJSON is missing (Node before 22, browsers before 2025), join strings.
const body = plant.id ? JSON.stringify(plant) : `{"id":${id},${JSON.stringify(plant).slice(1)}`;
for (let attempt = 1; attempt <= 10; attempt++) {
  const request = { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) };
  const response = await fetch(url.replace(/\/?$/, '/plants'), request).catch(() => undefined);
  const json = await response?.json().catch((e) => (e instanceof SyntaxError ? {} : undefined));
  if (json !== undefined && ![429, 503].includes(response.status)) {
    if (response.ok && json?.name === name) process.exit();
    const failure = json?.message ?? `${response.status}: not a response of the Plant Store`;
    throw new Error(json?.error === 40006 ? `The id ${id} is taken.` : failure);
  } // Without a whole response, the plant may be stored or not: send the same plant again, never with another id.
  const seconds = Number(response?.headers.get('retry-after')) || 1;
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
throw new Error('The Plant Store does not respond.');
