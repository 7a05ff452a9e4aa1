import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import express, { type Request, type Response } from 'express';
import { startServer } from './open-server.js';
import { openConnection } from './raw-http.js';

/** A request that arrived, which the test handles itself. */
export interface Exchange {
  readonly request: Request;
  readonly response: Response;
  /** The client's side of the connection. */
  readonly client: Socket;
}

/** A server that handles nothing by itself. */
export interface Receiver {
  /** Sends bytes on a new connection, and waits for the header of the request. */
  send(bytes: string): Promise<Exchange>;
  close(): Promise<void>;
}

/** @param settings of Express, which `request.app` has */
export async function startReceiver(settings: Record<string, unknown> = {}): Promise<Receiver> {
  const arrivals = new EventEmitter();
  const app = express();
  for (const [name, value] of Object.entries(settings)) app.set(name, value);
  app.use((request, response) => void arrivals.emit('request', request, response));
  const { port, close } = await startServer(createServer(app));
  return {
    async send(bytes) {
      const client = await openConnection(port);
      client.on('error', () => undefined).resume();
      const arrival = once(arrivals, 'request') as Promise<[Request, Response]>;
      client.write(bytes);
      const [request, response] = await arrival;
      return { request, response, client };
    },
    close,
  };
}

/** The bytes of a request. */
export function requestBytes(
  lines: readonly string[],
  body = '',
  start = 'POST / HTTP/1.1',
): string {
  return [start, 'Host: x', ...lines, '', body].join('\r\n');
}
