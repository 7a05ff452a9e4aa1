// For clients that pipeline, as load generators do and undici can, and for hostile ones.

import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Application, NextFunction, Request, Response } from 'express';
import { ErrorCode } from '../errors/error-codes.js';
import { toServiceError } from '../errors/error.filter.js';
import { overloaded, ServiceError } from '../errors/service-error.js';
import { discardInput } from './discard-input.js';
import { sendUnparsed } from './request-observer.js';

/**
 * The most requests of one connection that have no complete response. The next one is refused, and the connection closes: a
 * client that reads no response could fill the memory with requests.
 */
const MAX_PIPELINED = 16;

/** The most bytes of the body of a request that waits while later requests of its connection are read. */
const SMALL_BODY = 4096;

interface Connection {
  /** The response to the request that is handled, or was handled last. */
  current: ServerResponse;
  /** The response to the request that arrived last: it waits, or is `current`. */
  latest: ServerResponse;
  /** How many requests wait for their turn. */
  waiting: number;
  /** The error that the latest request gets at its turn. It is then the last one of its connection. */
  refusal?: ServiceError;
}

const connections = new WeakMap<Socket, Connection>();

/** @returns undefined before the first request of a connection */
export function connectionOf(socket: Socket): Connection | undefined {
  return connections.get(socket);
}

/**
 * Handles the requests of one connection one after the other. Node would start them all at once. If the connection then closed,
 * a waiting response would never emit `close`, and the resources of its request would not be released.
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
      connection = { current: response, latest: response, waiting: 0 };
      connections.set(socket, connection);
    }
    if (connection.refusal !== undefined) return;
    const { latest } = connection;
    connection.latest = response;
    const handle = () => {
      connection.current = response;
      if (connection.refusal === undefined || connection.latest !== response) {
        app(request, response, refuseUnroutable(response, server));
      } else {
        response.setHeader('Connection', 'close');
        sendUnparsed(server, response, connection.refusal);
      }
    };
    if (latest === response || latest.closed) {
      handle();
      return;
    }
    connection.waiting++;
    if (connection.waiting === MAX_PIPELINED) {
      connection.refusal = overloaded();
      // Requests after this one get no response, so their bytes are discarded.
      discardInput(socket);
    } else {
      // After the data that was read with it: Node resumes the socket at the end of each request.
      process.nextTick(() => {
        if (!isSmall(request)) socket.pause();
      });
    }
    latest.once('close', () => {
      connection.waiting--;
      // After all listeners have run: the resources of that request are released before this one needs its own.
      process.nextTick(() => {
        if (connection.waiting === 0) socket.resume();
        if (socket.writable) handle();
      });
    });
  };
}

/**
 * While a request waits that is not small, nothing else is read from its connection: many clients that pipeline large bodies
 * would fill the memory. A client that resets the connection then is noticed later, at the next response.
 */
function isSmall({ complete, readableLength, headers }: Request): boolean {
  return (complete ? readableLength : Number(headers['content-length'])) <= SMALL_BODY;
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
