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
  let sent: unknown;
  const server = createServer((incoming, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"name":', () => {
      sendError(incoming, response, internal());
      sent = sentError(response);
    });
  });
  const { port } = await openServer(resources, server);
  const [response] = (await once(request({ port, host: '127.0.0.1' }).end(), 'response')) as [
    IncomingMessage,
  ];
  await expect(text(response)).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(response.complete).toBe(false);
  expect(sent).toBeUndefined();
});
