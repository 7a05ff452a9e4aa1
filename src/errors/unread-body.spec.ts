import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CHUNKED, LAST_CHUNK } from '../../test/setup/http/raw-http.js';
import { requestBytes, startReceiver, type Receiver } from '../../test/setup/http/receiver.js';
import { sendError } from './send-error.js';
import { overloaded } from './service-error.js';

const LIMIT_BYTES = 1024 * 1024;

describe('the error for a request whose body was not read', () => {
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
  });
  afterAll(() => receiver.close());

  /** The field Connection of the response. */
  async function connectionAfter(lines: string[], body?: string): Promise<unknown> {
    const { request, response, client } = await receiver.send(requestBytes(lines, body));
    sendError(request, response, overloaded());
    client.destroy();
    return response.getHeader('Connection');
  }

  it('reads the rest of the body, which nobody needs', async () => {
    const { request, response, client } = await receiver.send(
      requestBytes(['Content-Length: 5'], 'he'),
    );
    sendError(request, response, overloaded());
    expect(request.readableFlowing).toBe(true);
    client.destroy();
  });

  it.each([0, 1, LIMIT_BYTES])('keeps the connection for a body of %d bytes', async (length) => {
    expect(await connectionAfter([`Content-Length: ${length}`])).toBeUndefined();
  });

  it.each([
    ['a longer body', [`Content-Length: ${LIMIT_BYTES + 1}`]],
    ['a body of unknown length', [CHUNKED]],
    ['a body that the client may not send', ['Content-Length: 1', 'Expect: 100-continue']],
  ])('closes the connection for %s', async (_kind, lines) => {
    expect(await connectionAfter(lines)).toBe('close');
  });

  it('keeps the connection for a body of any length that has arrived', async () => {
    const { request, response, client } = await receiver.send(requestBytes([CHUNKED], LAST_CHUNK));
    for await (const _piece of request);
    sendError(request, response, overloaded());
    client.destroy();
    expect(response.getHeader('Connection')).toBeUndefined();
  });
});
