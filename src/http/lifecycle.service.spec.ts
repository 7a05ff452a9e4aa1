import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { openServer } from '../../test/setup/http/open-server.js';
import { openConnection } from '../../test/setup/http/raw-http.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { untilSettled } from '../../test/setup/time/settled.js';
import { sentError } from '../errors/send-error.js';
import { LifecycleService } from './lifecycle.service.js';

const resources = useResources();

const SHUTTING_DOWN = expect.objectContaining({ code: 50302 });

let lifecycle: LifecycleService;

/** A request on a connection, and what the service passed to the next middleware. */
function enter(socket = new Socket()) {
  const request = new IncomingMessage(socket);
  const response = new ServerResponse(request);
  const passed: unknown[] = [];
  lifecycle.enter(request, response, (...args) => passed.push(...args, 'next'));
  return { socket, response, passed, connection: () => response.getHeader('Connection') };
}

beforeEach(() => {
  lifecycle = new LifecycleService();
});

describe('a service that serves', () => {
  it('passes a request on, and leaves its connection open', () => {
    const { passed, connection } = enter();
    expect(passed).toEqual(['next']);
    expect(connection()).toBeUndefined();
    expect(() => lifecycle.refuseUnlessServing()).not.toThrow();
  });
});

describe('a service that drains', () => {
  it('closes each connection after the last response to its requests in flight', () => {
    const first = enter();
    const inFlight = [first, enter(first.socket), enter()];
    lifecycle.drain();
    expect(inFlight.map(({ connection }) => connection())).toEqual([undefined, 'close', 'close']);
    expect(inFlight.map(({ response }) => response.headersSent)).toEqual([false, false, false]);
  });

  it('does not touch a response that has begun', () => {
    const { response, connection } = enter();
    response.writeHead(200).flushHeaders();
    lifecycle.drain();
    expect(connection()).toBeUndefined();
  });

  it('passes a later request on, and closes its connection after the response', () => {
    lifecycle.drain();
    const { passed, connection } = enter();
    expect(passed).toEqual(['next']);
    expect(connection()).toBe('close');
  });

  it('has 50302 as the reason why it is not ready', () => {
    lifecycle.drain();
    expect(() => lifecycle.refuseUnlessServing()).toThrow(SHUTTING_DOWN);
  });
});

describe('a service that stops', () => {
  it('refuses all requests in flight', () => {
    const first = enter();
    const inFlight = [first, enter(first.socket), enter()];
    lifecycle.stop();
    for (const { response, connection } of inFlight) {
      expect(sentError(response)).toEqual(SHUTTING_DOWN);
      expect(response.statusCode).toBe(503);
      expect(connection()).toBe('close');
    }
  });

  it('lets a response that has begun come to its end', () => {
    const { response } = enter();
    response.writeHead(200).write('a part');
    lifecycle.stop();
    expect(response.destroyed).toBe(false);
    expect(sentError(response)).toBeUndefined();
  });

  it('refuses a later request, and closes its connection', () => {
    lifecycle.stop();
    const { passed, connection } = enter();
    expect(passed).toEqual([SHUTTING_DOWN, 'next']);
    expect(connection()).toBe('close');
  });

  it('has 50302 as the reason why it is not ready', () => {
    lifecycle.stop();
    expect(() => lifecycle.refuseUnlessServing()).toThrow(SHUTTING_DOWN);
  });
});

describe('the pipelined requests of a connection', () => {
  const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
  /** The most that may have no response. */
  const MAX = 16;

  /** A connection to a server that leaves the responses to the test. `socket` is the side of the server. */
  async function open() {
    const responses: ServerResponse[] = [];
    const server = createServer((request, response) =>
      lifecycle.enter(request, response, () => responses.push(response)),
    );
    const { port } = await openServer(resources, server);
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = await openConnection(port);
    client.on('error', () => undefined).resume();
    const [socket] = await accepted;
    const send = async (count: number) => {
      const expected = responses.length + count;
      client.write(REQUEST.repeat(count));
      await untilSettled(() => responses.length === expected || socket.destroyed);
    };
    const respond = async (response: ServerResponse) => {
      response.end();
      await once(response, 'close');
    };
    return { responses, socket, send, respond };
  }

  it('have one that arrived last, whichever of them have their responses', async () => {
    const { responses, socket, send, respond } = await open();
    expect(lifecycle.latestOf(socket)).toBeUndefined();
    await send(2);
    expect(lifecycle.latestOf(socket)).toBe(responses[1]);
    await respond(responses[0]!);
    await respond(responses[1]!);
    expect(lifecycle.latestOf(socket)).toBe(responses[1]);
    await send(1);
    expect(lifecycle.latestOf(socket)).toBe(responses[2]);
  });

  it('are forgotten when their connection closes', async () => {
    const { socket, send } = await open();
    await send(1);
    socket.destroy();
    await once(socket, 'close');
    expect(lifecycle.latestOf(socket)).toBeUndefined();
  });

  it('may be any number, if at most 16 of them have no response', async () => {
    const { responses, socket, send, respond } = await open();
    await send(MAX);
    for (let i = 0; i < MAX; i++) {
      await respond(responses[i]!);
      await send(1);
    }
    expect(responses).toHaveLength(2 * MAX);
    expect(socket.destroyed).toBe(false);
  });

  it('end their connection when one more of them has none, and that one is not handled', async () => {
    const { responses, socket, send } = await open();
    await send(MAX + 1);
    expect(responses).toHaveLength(MAX);
    expect(socket.destroyed).toBe(true);
  });
});
