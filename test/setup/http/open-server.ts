import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Resources } from '../jest/resources.js';

/** A server on a free port of loopback. */
export interface StartedServer {
  readonly port: number;
  readonly url: string;
  /** Closes the server and its connections. */
  close(this: void): Promise<void>;
}

/** Starts a server that one test uses; it is closed with the resources. */
export async function openServer(resources: Resources, server: Server): Promise<StartedServer> {
  const started = await startServer(server);
  resources.defer(started.close);
  return started;
}

/** Starts a server that its user closes, such as the server of a helper, or of all tests of a file. */
export async function startServer(server: Server): Promise<StartedServer> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
