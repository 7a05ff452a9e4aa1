import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { holdTime } from '../../test/setup/time/held-timers.js';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { lingerAtEnd } from './linger.js';

const resources = useResources();

const LIMIT_MS = 5000;
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

describe('a connection after its last response', () => {
  let server: Server;
  let port: number;
  let requests: number;

  // Network events come from Node itself, whose timers and ticks are not these.
  beforeEach(async () => {
    holdTime();
    requests = 0;
    server = createServer((_request, response: ServerResponse) => {
      requests++;
      response.end('last');
    });
    Object.assign(server, { httpAllowHalfOpen: true });
    lingerAtEnd(server, LIMIT_MS);
    ({ port } = await openServer(resources, server));
  });
  afterEach(() => void jest.useRealTimers());

  /** A client that has received its last response, and keeps its side of the connection open. */
  async function receiveLast(): Promise<{ client: Socket; socket: Socket }> {
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    client.on('error', () => undefined);
    const [socket] = (await once(server, 'connection')) as [Socket];
    client.write(REQUEST);
    client.resume();
    await once(client, 'end');
    return { client, socket };
  }

  it('stays open until its client closes its side, and then leaves no timer behind', async () => {
    const { client, socket } = await receiveLast();
    expect(socket).toMatchObject({ writable: false, destroyed: false });
    expect(jest.getTimerCount()).toBe(1);
    client.end();
    await once(socket, 'close');
    expect(jest.getTimerCount()).toBe(0);
  });

  it('discards what still arrives, and handles no further request', async () => {
    const { client, socket } = await receiveLast();
    client.end(REQUEST + 'x'.repeat(1_000_000));
    await once(socket, 'close');
    expect(socket.bytesRead).toBe(2 * REQUEST.length + 1_000_000);
    expect(requests).toBe(1);
  });

  it('closes after the limit, whatever its client sends', async () => {
    const { client, socket } = await receiveLast();
    jest.advanceTimersByTime(LIMIT_MS - 1);
    client.write('x');
    await once(socket, 'data');
    expect(socket.destroyed).toBe(false);
    jest.advanceTimersByTime(1);
    expect(socket.destroyed).toBe(true);
  });

  it('closes after the limit, however often Node asks for it', async () => {
    const { socket } = await receiveLast();
    jest.advanceTimersByTime(LIMIT_MS / 2);
    socket.destroySoon();
    jest.advanceTimersByTime(LIMIT_MS / 2);
    expect(socket.destroyed).toBe(true);
    await once(socket, 'close');
    expect(jest.getTimerCount()).toBe(0);
  });
});
