import { Client, type ClientConfig } from 'pg';
import { parse } from 'pg-connection-string';
import { noPrimary } from './postgres-errors.js';

/** A server that `DATABASE_URL` names. */
export interface DatabaseServer {
  readonly host: string;
  readonly port: number;
}

/** The servers that an address names, in its order. */
export function serversOf(url: string): DatabaseServer[] {
  const { host, port } = parse(url);
  const ports = (port || '5432').split(',');
  return (host || 'localhost')
    .split(',')
    .map((name, i) => ({ host: name, port: Number(ports[i] ?? ports[0]) }));
}

/**
 * A client for a pool, which connects to the server that takes writes: first it tries the server that did so last, then
 * the others, in the order of the address.
 *
 * @param timeout of each connection of the pool, in milliseconds, the search included
 */
export function primaryClient(
  servers: readonly DatabaseServer[],
  timeout: number,
): new (config: ClientConfig) => Client {
  // The search asks each server, and then the client connects to the primary.
  const timeoutOfEach = Math.floor(timeout / (servers.length + 1));
  let latest: DatabaseServer | undefined;
  let search: Promise<DatabaseServer> | undefined;
  const clients = new Set<Client>();

  const find = async (config: ClientConfig) => {
    const others = servers.filter((server) => server !== latest);
    const found = await findPrimary(latest === undefined ? others : [latest, ...others], (server) =>
      takesWrites(server, {
        ...config,
        connectionTimeoutMillis: timeoutOfEach,
        query_timeout: timeoutOfEach,
      }),
    );
    if (found !== latest) {
      // The former primary may be frozen. When it goes on, it could accept writes that the new primary never gets.
      for (const client of clients) client.connection.stream.destroy();
      latest = found;
    }
    return found;
  };

  return class extends Client {
    constructor(private readonly config: ClientConfig) {
      super(config);
    }

    override connect(): Promise<Client>;
    override connect(callback: (error: Error | null) => void): void;
    override connect(callback?: (error: Error | null) => void): Promise<Client> | void {
      // Connections that are opened at the same moment share one search.
      search ??= find(this.config).finally(() => (search = undefined));
      const connected = search.then((server) => {
        // The pool has given up: a destroyed socket would connect, but never deliver anything.
        if (this.connection.stream.destroyed) throw new Error('Connection terminated');
        clients.add(Object.assign(this, server));
        this.once('end', () => clients.delete(this));
        return super.connect();
      });
      if (callback === undefined) return connected;
      connected.then(() => callback(null), callback);
    }
  };
}

async function findPrimary(
  servers: readonly DatabaseServer[],
  isPrimary: (server: DatabaseServer) => Promise<boolean>,
): Promise<DatabaseServer> {
  const failures: [server: string, error: unknown][] = [];
  for (const server of servers) {
    const address = `${server.host}:${server.port}`;
    try {
      if (await isPrimary(server)) return server;
      failures.push([address, undefined]);
    } catch (error) {
      failures.push([address, error]);
    }
  }
  throw noPrimary(failures);
}

/** Asks on a connection of its own, because a client of pg cannot connect a second time. */
async function takesWrites(server: DatabaseServer, config: ClientConfig): Promise<boolean> {
  const client = Object.assign(new Client(config), server);
  // A lost connection is also reported as an event, which would end the process without a listener.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ transaction_read_only: string }>(
      'SHOW transaction_read_only',
    );
    return rows[0]?.transaction_read_only === 'off';
  } finally {
    // Not awaited: a frozen server never closes its side.
    void client.end();
  }
}
