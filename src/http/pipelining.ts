// For clients that pipeline, such as undici with the option `pipelining`, and against those that send requests and read no responses.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Application, NextFunction, Request, Response } from 'express';
import { ErrorCode } from '../errors/error-codes.js';
import { toServiceError } from '../errors/error.filter.js';
import { overloaded, ServiceError } from '../errors/service-error.js';
import { discardInput } from './discard-input.js';
import { sendUnparsed } from './request-observer.js';
import { whenClosed } from './when-closed.js';

/**
 * The most requests of one connection that have no complete response. The next one is refused, and the connection closes: a
 * client that reads no response could fill the memory with requests.
 */
const MAX_PIPELINED = 16;

/** The most bytes that the waiting requests of all connections may take; the next one is refused, and its connection closes. */
const MAX_WAITING_BYTES = 16_777_216;

/** What Node keeps of a request besides the text of its header and its body, at least. */
const BYTES_PER_REQUEST = 4096;

/** What Node keeps of a name or a value of the header besides its text. */
const BYTES_PER_TEXT = 64;

interface Connection {
  /** The response to the request that is handled, or was handled last. */
  current: ServerResponse;
  /** The response to the request that arrived last: it waits, or is `current`. */
  latest: ServerResponse;
  /** How many requests wait for their turn. */
  waiting: number;
  /** How many bytes these requests take. */
  waitingBytes: number;
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
 *
 * @returns a listener for `request`, of which a third argument is an error that this request gets at its turn, as the last one of
 *   its connection
 */
export function handleInTurn(app: Application, server: Server): RequestListener {
  let allWaitingBytes = 0;
  const addBytes = (connection: Connection, bytes: number) => {
    connection.waitingBytes += bytes;
    allWaitingBytes += bytes;
  };
  return (incoming: IncomingMessage, outgoing: ServerResponse, refusal?: ServiceError) => {
    const request = incoming as Request;
    const response = outgoing as Response;
    const { socket } = request;
    // RFC 9112 section 9.6: a request that arrives after the last response is ignored.
    if (!socket.writable) return;
    let connection = connections.get(socket);
    if (connection === undefined) {
      const opened: Connection = {
        current: response,
        latest: response,
        waiting: 0,
        waitingBytes: 0,
      };
      whenClosed(socket, () => addBytes(opened, -opened.waitingBytes));
      connection = opened;
      connections.set(socket, connection);
    }
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
    if (refusal !== undefined) refuse(connection, socket, refusal);
    if (latest === response || latest.closed) {
      handle();
      return;
    }
    connection.waiting++;
    const bytes = bytesOf(request);
    addBytes(connection, bytes);
    const isTooMuch = connection.waiting === MAX_PIPELINED || allWaitingBytes > MAX_WAITING_BYTES;
    if (isTooMuch && refusal === undefined) refuse(connection, socket, overloaded());
    latest.once('close', () => {
      connection.waiting--;
      // After all listeners have run: the resources of that request are released before this one needs its own.
      process.nextTick(() => {
        // The bytes of a connection that has ended are subtracted when it closes.
        if (!socket.writable) return;
        addBytes(connection, -bytes);
        handle();
      });
    });
  };
}

/** Refuses the latest request of a connection, at its turn. */
function refuse(connection: Connection, socket: Socket, error: ServiceError): void {
  connection.refusal = error;
  // Requests after this one get no response, so their bytes are discarded.
  discardInput(socket);
}

/** @returns about how many bytes of memory a request can take while nobody reads its body */
function bytesOf({ url, headers, rawHeaders, readableHighWaterMark }: Request): number {
  const header = [url, ...rawHeaders].reduce(
    (bytes, text) => bytes + BYTES_PER_TEXT + text.length,
    0,
  );
  const body =
    headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity;
  return BYTES_PER_REQUEST + header + Math.min(body, readableHighWaterMark);
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
