import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { parse } from 'pg-connection-string';

/** Stands between the service and its database, so that a test can take the database away. */
export interface DatabaseProxy {
  readonly url: string;
  /** Connections made so far. */
  readonly connections: number;
  /** From now on nothing gets through, and nothing is closed: a server whose processes are stopped. */
  freeze(): void;
  /** Cuts all connections and refuses new ones: a server that is not running. */
  cut(): void;
  /** Everything works again; what was held back while frozen is delivered. */
  restore(): void;
  close(): Promise<void>;
}

export async function startDatabaseProxy(databaseUrl: string): Promise<DatabaseProxy> {
  const { host, port } = parse(databaseUrl);
  const target = host?.startsWith('/')
    ? { path: `${host}/.s.PGSQL.5432` }
    : { host: host ?? '127.0.0.1', port: Number(port || 5432) };
  const sockets = new Set<Socket>();
  let state: 'open' | 'frozen' | 'cut' = 'open';
  let connections = 0;

  const server = createServer((client) => {
    connections++;
    if (state === 'cut') {
      client.destroy();
      return;
    }
    const upstream = connect(target);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on('data', (chunk) => other.write(chunk));
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      if (state === 'frozen') socket.pause();
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');

  const url = new URL(databaseUrl.replace(/\/\/(.*@)?[^/]*\//, '//$1placeholder/'));
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  url.searchParams.delete('host');

  return {
    url: url.href,
    get connections() {
      return connections;
    },
    freeze() {
      state = 'frozen';
      for (const socket of sockets) socket.pause();
    },
    cut() {
      state = 'cut';
      for (const socket of sockets) socket.destroy();
    },
    restore() {
      state = 'open';
      for (const socket of sockets) socket.resume();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
