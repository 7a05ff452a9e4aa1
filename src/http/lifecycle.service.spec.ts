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

it('a service that serves passes a request on, and leaves its connection open', () => {
  const { passed, connection } = enter();
  expect(passed).toEqual(['next']);
  expect(connection()).toBeUndefined();
  expect(() => lifecycle.refuseUnlessServing()).not.toThrow();
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

  it('is not ready, and passes a later request on, whose connection closes after the response', () => {
    lifecycle.drain();
    const { passed, connection } = enter();
    expect(passed).toEqual(['next']);
    expect(connection()).toBe('close');
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

  it('is not ready, and refuses a later request, whose connection closes', () => {
    lifecycle.stop();
    const { passed, connection } = enter();
    expect(passed).toEqual([SHUTTING_DOWN, 'next']);
    expect(connection()).toBe('close');
    expect(() => lifecycle.refuseUnlessServing()).toThrow(SHUTTING_DOWN);
  });
});

it('a connection that closes is forgotten, with its requests', async () => {
  const { socket, response } = enter();
  expect(lifecycle.latestOf(socket)).toBe(response);
  socket.destroy();
  await once(socket, 'close');
  expect(lifecycle.latestOf(socket)).toBeUndefined();
});
