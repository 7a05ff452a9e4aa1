const { PLANT_STORE_URL = 'http://127.0.0.1:3000', PLANT_STORE_TOKEN: token } = process.env;
if (!token) throw new Error('Set PLANT_STORE_TOKEN to a token of the Plant Store.');
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
const [id, name, tag] = process.argv.slice(2); // A number would round the id; BigInt('') would be 0. Where JSON.rawJSON is missing (Node before 22, browsers before 2025), join strings.
const body = JSON.rawJSON
  ? JSON.stringify({ id: JSON.rawJSON(BigInt(id || 'ID')), name, tag })
  : `{"id":${BigInt(id || 'ID')},${JSON.stringify({ name, tag }).slice(1)}`;
for (let attempt = 1; attempt <= 10; attempt++) {
  const request = { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) };
  const response = await fetch(`${PLANT_STORE_URL}/plants`, request).catch(() => undefined);
  const text = await response?.text().catch(() => undefined);
  if (text !== undefined && ![429, 503].includes(response.status)) {
    const json = text[0] === '{' ? JSON.parse(text) : { message: `${response.status}: no JSON` };
    if (response.ok && json.name === name) process.exit();
    throw new Error(json.error === 40006 ? `The id ${id} is taken.` : json.message);
  } // Without a whole response, the plant may be stored or not: send the same plant again, never with another id.
  const seconds = Number(response?.headers.get('retry-after')) || 1;
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
throw new Error('The Plant Store does not respond.');
