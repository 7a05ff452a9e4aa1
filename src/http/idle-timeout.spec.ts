import { once } from 'node:events';
import type { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { get, holdRequests } from '../../test/http/held-requests.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { readUnchecked } from '../../test/setup/http/raw-http.js';
import { endIdle } from './idle-timeout.js';
import { respondToParserErrors } from './parser-errors.js';

const resources = useResources();

const IDLE_MS = 600_000;
const REQUEST_TIMEOUT = { status: 408, body: expect.stringContaining('40800') };

/** The beginning of a request with a body of this length. */
const post = (length: number) => `POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`;

describe('a connection on which nothing happens for the time limit', () => {
  let service: Awaited<ReturnType<typeof holdRequests>>;
  let client: Socket;
  let socket: Socket;

  beforeEach(async () => {
    service = await holdRequests(resources, {}, (server) => {
      server.timeout = IDLE_MS;
      respondToParserErrors(server);
      endIdle(server);
    });
    ({ client, socket } = await service.connect());
  });

  /** What Node does when the time is over. */
  const timeOut = () => socket.emit('timeout');

  it('stays open while its client waits for a response, and is looked at again after that time', async () => {
    client.write(get('/1'));
    const { response } = await service.next();
    for (let i = 0; i < 2; i++) {
      socket.setTimeout(0);
      timeOut();
      expect(socket).toMatchObject({ destroyed: false, timeout: IDLE_MS });
    }
    response.end('late');
    expect(await readUnchecked(client, 1)).toMatchObject([{ status: 200, body: 'late' }]);
  });

  it('stays open while a later request waits for its turn', async () => {
    client.write(get('/1') + post(5));
    const { response } = await service.next();
    timeOut();
    expect(socket.destroyed).toBe(false);
    response.end('late');
    expect(await readUnchecked(client, 1)).toMatchObject([{ status: 200, body: 'late' }]);
  });

  it('stays open while the service does not read the body yet', async () => {
    client.write(post(5));
    const { request, response } = await service.next();
    timeOut();
    expect(socket.destroyed).toBe(false);
    request.resume();
    client.write('12345');
    await once(request, 'end');
    response.end('late');
    expect(await readUnchecked(client, 1)).toMatchObject([{ status: 200, body: 'late' }]);
  });

  it('is ended with an Error if the rest of a body does not arrive', async () => {
    client.write(`${post(5)}1234`);
    const { request } = await service.next();
    request.resume();
    timeOut();
    expect(await readUnchecked(client)).toMatchObject([REQUEST_TIMEOUT]);
  });

  it.each(['', 'GET / HTTP/1.1\r\nHo'])(
    'is ended with an Error if no more of a request arrives than %j',
    async (head) => {
      client.write(head);
      timeOut();
      expect(await readUnchecked(client)).toMatchObject([REQUEST_TIMEOUT]);
    },
  );

  it('is closed if the client does not read the response', async () => {
    client.write(get('/1'));
    const { response } = await service.next();
    response.write('a part');
    timeOut();
    expect(socket.destroyed).toBe(true);
  });

  it('is closed if the client has the response, and sends no other request', async () => {
    client.write(get('/1'));
    (await service.next()).response.end('1');
    await readUnchecked(client, 1);
    timeOut();
    expect(socket.destroyed).toBe(true);
  });
});
