import { once } from 'node:events';
import { createServer, request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, it } from '@jest/globals';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { sendError, sentError } from './send-error.js';
import { internal } from './errors.js';

const resources = useResources();

it('an error after the response began closes the connection, so that the response is not taken for complete', async () => {
  const error = internal(new Error('secret'));
  let sent: unknown;
  const server = createServer((incoming, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"name":', () => {
      sendError(incoming, response, error);
      sent = sentError(response);
    });
  });
  const { port } = await openServer(resources, server);
  const [response] = (await once(request({ port, host: '127.0.0.1' }).end(), 'response')) as [
    IncomingMessage,
  ];
  expect(response.statusCode).toBe(200);
  await expect(text(response)).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(response.complete).toBe(false);
  expect(sent).toBeUndefined();
});

it('an error for a client that is gone is not sent, and does not count as sent', async () => {
  let sent: unknown;
  const server = createServer((incoming, response) => {
    response.destroy();
    sendError(incoming, response, internal(new Error('any')));
    sent = sentError(response);
  });
  const { port } = await openServer(resources, server);
  await expect(once(request({ port, host: '127.0.0.1' }).end(), 'response')).rejects.toMatchObject({
    code: 'ECONNRESET',
  });
  expect(sent).toBeUndefined();
});
