import { expect, it } from '@jest/globals';
import { expectDocumented } from './documented.js';

const received = (request: string, body: string, status = 200) => ({
  status,
  header: (name: string) => (name === 'content-type' ? 'application/json' : 'a'),
  body,
  request,
});

// Every response that a test receives is checked: these must fail it.
it.each([
  ['POST /plants?x=1', '{"nom":"a"}', 200, "must have required property 'name'"],
  ['GET /plants', '{"name":"a"}', 200, 'this operation or status is not documented'],
  ['POST /plants', '{"error":40100,"message":"A token is missing."}', 400, 'of another status'],
  ['GET /other', '{"error":40499,"message":"No such path."}', 404, 'does not contain its number'],
])('%s with the response %s and %d is noticed', async (request, body, status, problem) => {
  await expect(expectDocumented(received(request, body, status))).rejects.toThrow(problem);
});

it('a response that is as the OpenAPI document says is accepted, and one of a path that it does not have', async () => {
  await expectDocumented(received('POST /plants', '{"name":"a"}'));
  await expectDocumented(received('GET /health/live', '{"status":"ok"}'));
});
