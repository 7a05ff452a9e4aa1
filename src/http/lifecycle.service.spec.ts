import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { sentError } from '../errors/send-error.js';
import { LifecycleService } from './lifecycle.service.js';

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

  it('remembers one response for each open connection, and none of a closed one', async () => {
    const first = enter();
    enter(first.socket);
    const latest = enter(first.socket);
    const other = enter();
    expect([...lifecycle['latest']]).toEqual([
      [first.socket, latest.response],
      [other.socket, other.response],
    ]);
    expect(first.socket.listenerCount('close')).toBe(enter().socket.listenerCount('close'));
    first.socket.destroy();
    await once(first.socket, 'close');
    expect(lifecycle['latest'].has(first.socket)).toBe(false);
    expect(lifecycle['latest'].has(other.socket)).toBe(true);
  });
});

describe('a service that drains', () => {
  it('closes the connections of the requests in flight after their responses', () => {
    const inFlight = [enter(), enter()];
    lifecycle.drain();
    expect(inFlight.map(({ connection }) => connection())).toEqual(['close', 'close']);
    expect(inFlight.map(({ response }) => response.headersSent)).toEqual([false, false]);
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
  it('refuses the requests in flight', () => {
    const inFlight = [enter(), enter()];
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
    expect(lifecycle['latest'].size).toBe(0);
  });

  it('has 50302 as the reason why it is not ready', () => {
    lifecycle.stop();
    expect(() => lifecycle.refuseUnlessServing()).toThrow(SHUTTING_DOWN);
  });
});
