import { on, once } from 'node:events';
import { createServer, type Server, type ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import express, { type NextFunction, type Request, type Response } from 'express';
import { toServiceError } from '../../src/errors/error.filter.js';
import { sendError } from '../../src/errors/send-error.js';
import { handleInTurn } from '../../src/http/pipelining.js';
import { openServer } from '../setup/http/open-server.js';
import { openConnection } from '../setup/http/raw-http.js';
import type { Resources } from '../setup/jest/resources.js';

/** A request that waits until the test sends its response. */
interface HeldRequest {
  readonly request: Request;
  readonly response: Response;
}

interface HoldingServer {
  readonly server: Server;
  readonly port: number;
  /** The paths of the requests whose turn has come. */
  readonly started: readonly string[];
  /** Waits for the next request whose turn comes. */
  readonly next: () => Promise<HeldRequest>;
  /** Opens a connection. `socket` is the side of the server. */
  readonly connect: () => Promise<{ client: Socket; socket: Socket }>;
}

/** The request of a client, without a body. */
export const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

/**
 * Opens a server that handles the requests of each connection in turn, and leaves their responses to the test. At /fault,
 * its app has a fault.
 */
export async function holdRequests(
  resources: Resources,
  options: ServerOptions = {},
  configure: (server: Server) => void = () => undefined,
): Promise<HoldingServer> {
  const started: string[] = [];
  const server = createServer(options);
  const held = on(server, 'held');
  const app = express();
  app.use(({ path }, _response, next) => {
    started.push(path);
    next();
  });
  app.get('/fault', () => {
    throw new Error('secret');
  });
  app.use((request: Request, response: Response) => {
    server.emit('held', { request, response });
  });
  app.use((error: unknown, request: Request, response: Response, next: NextFunction) => {
    if (request.path === '/fault') next(error);
    else sendError(request, response, toServiceError(error));
  });
  server.on('request', handleInTurn(app, server));
  configure(server);
  const { port } = await openServer(resources, server);
  return {
    server,
    port,
    started,
    next: async () => ((await held.next()).value as [HeldRequest])[0],
    connect: async () => {
      const accepted = once(server, 'connection');
      const client = await openConnection(port);
      const [socket] = (await accepted) as [Socket];
      return { client, socket };
    },
  };
}
