import { expect, it } from '@jest/globals';
import { expectDocumented } from './documented.js';

const received = (request: string, status: number, body: string) => ({
  request,
  status,
  header: (name: string) => (name === 'content-type' ? 'application/json' : 'a'),
  body,
});

it.each([
  ['POST /plants?x=1', '{"name":"a"}'],
  ['GET /health/live', 'anything, because it is not in the OpenAPI document'],
])('the success of %s passes with %s', async (request, body) => {
  await expectDocumented(received(request, 200, body));
});

it.each([
  ['another schema', 'POST /plants?x=1', 200, '{"nom":"a"}', "must have required property 'name'"],
  [
    'the number of another status',
    'POST /plants',
    400,
    '{"error":40100,"message":"A token is missing."}',
    'its number is of another status. It is:',
  ],
  [
    'a method that is not there',
    'GET /plants',
    200,
    '{"name":"a"}',
    'this operation or status is not documented',
  ],
])('a response with %s is noticed', async (_kind, request, status, body, problem) => {
  await expect(expectDocumented(received(request, status, body))).rejects.toThrow(problem);
});
