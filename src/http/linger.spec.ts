import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { closeServers, openServer } from '../../test/setup/http/open-server.js';
import { lingerAtEnd, STOP_LINGERING_EVENT } from './linger.js';

const LIMIT_MS = 5000;
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

describe('a connection after its last response', () => {
  let server: Server;
  let port: number;
  let requests: number;

  const start = async (limit: number) => {
    requests = 0;
    server = createServer((_request, response: ServerResponse) => {
      requests++;
      response.end('last');
    });
    Object.assign(server, { httpAllowHalfOpen: true });
    lingerAtEnd(server, limit);
    port = await openServer(server);
  };

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

  // Network events come from Node itself, whose timers and ticks are not these.
  beforeEach(async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] });
    await start(LIMIT_MS);
  });
  afterEach(async () => {
    jest.useRealTimers();
    await closeServers();
  });

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

  it('is ended once, however often Node asks for it', async () => {
    const { socket } = await receiveLast();
    jest.advanceTimersByTime(LIMIT_MS / 2);
    socket.destroySoon();
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(LIMIT_MS / 2);
    expect(socket.destroyed).toBe(true);
  });

  it('closes at once when the server stops', async () => {
    const { socket } = await receiveLast();
    server.emit(STOP_LINGERING_EVENT);
    expect(socket.destroyed).toBe(true);
  });

  it.each([
    [LIMIT_MS, 1000],
    [300, 300],
  ])('with a limit of %d ms closes after %d ms while the server stops', async (limit, ms) => {
    await start(limit);
    server.emit(STOP_LINGERING_EVENT);
    const { socket } = await receiveLast();
    jest.advanceTimersByTime(ms - 1);
    expect(socket.destroyed).toBe(false);
    jest.advanceTimersByTime(1);
    expect(socket.destroyed).toBe(true);
  });

  it('is not touched again when the server stops and it is closed already', async () => {
    const { client, socket } = await receiveLast();
    client.end();
    await once(socket, 'close');
    const destroy = jest.spyOn(socket, 'destroy');
    server.emit(STOP_LINGERING_EVENT);
    expect(destroy).not.toHaveBeenCalled();
  });
});
