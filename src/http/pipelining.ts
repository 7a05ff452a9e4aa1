import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Application, NextFunction, Request, Response } from 'express';
import { ErrorCode } from '../errors/error-codes.js';
import { toServiceError } from '../errors/error.filter.js';
import { overloaded, ServiceError } from '../errors/service-error.js';
import { discardInput } from './discard-input.js';
import { sendUnparsed } from './request-observer.js';
import { whenClosed } from './when-closed.js';

/**
 * The most requests in the queue of one connection: a client that reads no response could fill the memory with requests.
 * The next request is refused, and the connection closes.
 */
const MAX_PIPELINED = 16;

interface Connection {
  /** The response to the request that is handled, or was handled last. */
  current: ServerResponse;
  /** The response to the latest request in the queue. */
  latest: ServerResponse;
  /** The error that the latest request gets when its turn comes. */
  refusal?: ServiceError;
  /** One function per request without a complete response. The first function is running; the other functions wait. */
  readonly queue: (() => void)[];
}

const connections = new WeakMap<Socket, Connection>();

/** @returns undefined before the first request of a connection */
export function connectionOf(socket: Socket): Connection | undefined {
  return connections.get(socket);
}

/**
 * Handles the requests of one connection one after the other. Node would start them all at once. If the connection then
 * closed, a waiting response would never emit `close`, and the resources of its request would not be released.
 */
export function handleInTurn(app: Application, server: Server): RequestListener {
  return (incoming, outgoing) => {
    const request = incoming as Request;
    const response = outgoing as Response;
    const { socket } = request;
    // RFC 9112 section 9.6: a request that arrives after the last response is ignored.
    if (!socket.writable) return;
    let connection = connections.get(socket);
    if (connection === undefined) {
      connection = { current: response, latest: response, queue: [] };
      connections.set(socket, connection);
    }
    // A refused request is the last one of its connection.
    if (connection.refusal !== undefined) return;
    connection.latest = response;
    const { queue } = connection;
    if (queue.length === MAX_PIPELINED) {
      connection.refusal = overloaded();
      // Requests after this one get no response, so their bytes are discarded.
      discardInput(socket);
    }
    queue.push(() => {
      connection.current = response;
      whenClosed(response, () => {
        queue.shift();
        // After all listeners have run: the resources of this request are released before the next one needs its own.
        process.nextTick(() => {
          if (socket.writable) queue[0]?.();
        });
      });
      if (refusalOf(socket, response) !== undefined) response.setHeader('Connection', 'close');
      app(request, response, refuseUnroutable(response, server));
    });
    if (queue.length === 1) queue[0]!();
  };
}

/** A middleware that refuses a request for which `handleInTurn` stored an error when the queue was full. */
export function refuseAtItsTurn({ socket }: Request, response: Response, next: NextFunction): void {
  next(refusalOf(socket, response));
}

function refusalOf(socket: Socket, response: ServerResponse): ServiceError | undefined {
  const { latest, refusal } = connections.get(socket)!;
  return latest === response ? refusal : undefined;
}

/** Express calls this for a target without a path, such as `GET http://`; Express's own handler would send HTML. */
function refuseUnroutable(response: Response, server: Server): NextFunction {
  return (thrown?: unknown) => {
    const error =
      thrown === undefined
        ? new ServiceError(ErrorCode.badRequest, 'The target of the request is not a path.')
        : toServiceError(thrown);
    sendUnparsed(server, response, error);
  };
}
