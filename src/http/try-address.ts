// Finds out whether an address is free, for operators who start the service twice.

import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/**
 * Opens an address and closes it again, to find out whether it is free.
 *
 * @param port 0 for any free port
 * @returns the port
 * @throws the error of the socket, such as EADDRINUSE
 */
export async function tryAddress(host: string, port: number): Promise<number> {
  const server = createServer();
  await once(server.listen(port, host), 'listening');
  const address = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return address.port;
}
