import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';

const opened: { server: Server; sockets: Socket[] }[] = [];

/** Opens a server on loopback until `closeServers` is called. @returns its port */
export async function openServer(server: Server): Promise<number> {
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => sockets.push(socket));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  opened.push({ server, sockets });
  return (server.address() as AddressInfo).port;
}

/** Closes the servers and their connections; for `afterEach`. */
export async function closeServers(): Promise<void> {
  for (const { server, sockets } of opened.splice(0)) {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  }
}
