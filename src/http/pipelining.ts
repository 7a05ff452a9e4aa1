import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Application, NextFunction, Request, Response } from 'express';
import { ErrorCode } from '../errors/error-codes.js';
import { toServiceError } from '../errors/error.filter.js';
import { sendError } from '../errors/send-error.js';
import { overloaded, ServiceError } from '../errors/service-error.js';
import { UNPARSED_EVENT } from './unparsed-event.js';
import { whenClosed } from './when-closed.js';

/**
 * Requests that may wait for their turn on one connection. Few clients pipeline at all; one that sends hundreds of
 * requests and reads no response wants the responses to fill our memory. One more is refused, and is the last.
 */
const MAX_PIPELINED = 16;

/** What is known of a connection. */
export interface Connection {
  /** The response to the request that came last. */
  latest: ServerResponse;
  /** Handles the requests that have not had their response yet; the first is in flight. */
  readonly turns: (() => void)[];
  /** Why the request that came last cannot be read to its end. */
  broken?: ServiceError;
}

const connections = new WeakMap<Socket, Connection>();

/** Requests that are refused when their turn comes, for a reason that their connection has. */
const refusals = new WeakMap<Request, ServiceError>();

/** @returns undefined before the first request of a connection */
export function connectionOf(socket: Socket): Connection | undefined {
  return connections.get(socket);
}

/**
 * Handles the requests of one connection one after the other. Node would hand them over as they come, and a
 * response that waits behind another never learns that its connection closed: whatever was opened for it, and
 * its place among the pending requests, would be lost for good.
 */
export function handleInTurn(app: Application, server: Server): RequestListener {
  return (incoming, outgoing) => {
    const request = incoming as Request;
    const response = outgoing as Response;
    const { socket } = request;
    // RFC 9112 section 9.6: nothing that comes behind the last response is handled.
    if (!socket.writable) return;
    let connection = connections.get(socket);
    if (connection === undefined) {
      connection = { latest: response, turns: [] };
      connections.set(socket, connection);
    }
    connection.latest = response;
    const { turns } = connection;
    if (turns.length > MAX_PIPELINED) return;
    const isLast = turns.length === MAX_PIPELINED;
    // What is not read any more need not be remembered.
    if (isLast) socket.pause();
    turns.push(() => {
      whenClosed(response, () => {
        turns.shift();
        if (socket.writable) turns[0]?.();
      });
      const broken = response === connection.latest ? connection.broken : undefined;
      const refusal = isLast ? overloaded() : broken;
      if (refusal !== undefined) {
        refusals.set(request, refusal);
        response.setHeader('Connection', 'close');
      }
      app(request, response, giveUp(request, response, server));
    });
    if (turns.length === 1) turns[0]!();
  };
}

/** Refuses the request that is one too many in the queue of its connection, or cannot be read to its end. */
export function refuseAtItsTurn(request: Request, _response: Response, next: NextFunction): void {
  next(refusals.get(request));
}

/** For what Express cannot even look for a route for, such as `GET http://`; it would send a page. */
function giveUp(request: Request, response: Response, server: Server): NextFunction {
  return (thrown?: unknown) => {
    const error =
      thrown === undefined
        ? new ServiceError(ErrorCode.badRequest, 'The target of the request is not a path.')
        : toServiceError(thrown);
    server.emit(UNPARSED_EVENT, error);
    sendError(request, response, error);
  };
}
