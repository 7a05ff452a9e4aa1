import { expect, it } from '@jest/globals';
import { expectDocumented } from './documented.js';

const received = (request: string, body: string) => ({
  status: 200,
  header: (name: string) => (name === 'content-type' ? 'application/json' : 'a'),
  body,
  request,
});

it('a success is as the OpenAPI document says', async () => {
  await expectDocumented(received('POST /plants', '{"name":"a"}'));
  await expectDocumented(received('POST /plants?x=1', '{"name":"a"}'));
});

it('a success that the OpenAPI document describes differently is noticed', async () => {
  for (const request of ['POST /plants', 'POST /plants?x=1']) {
    await expect(expectDocumented(received(request, '{"nom":"a"}'))).rejects.toThrow(
      "must have required property 'name'",
    );
  }
});

it('an error whose number is one of another status is noticed', async () => {
  const error = {
    ...received('POST /plants', '{"error":40100,"message":"A token is missing."}'),
    status: 400,
  };
  await expect(expectDocumented(error)).rejects.toThrow('its number is of another status. It is:');
});

it('a success with a method that the OpenAPI document does not have on this path is noticed', async () => {
  await expect(expectDocumented(received('GET /plants', '{"name":"a"}'))).rejects.toThrow(
    'this operation or status is not documented',
  );
});

it('a success of a path that is not in the OpenAPI document may have any body', async () => {
  await expectDocumented(received('GET /health/live', '{"status":"ok"}'));
  await expectDocumented(received('GET /plants/1/leaves', 'green'));
});
