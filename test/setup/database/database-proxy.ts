import { connect, createServer, type Socket } from 'node:net';
import { parse } from 'pg-connection-string';
import { startServer } from '../http/open-server.js';

/** A proxy between the service and its database, with which a test can make the database unavailable. */
export interface DatabaseProxy {
  readonly url: string;
  /** Connections made so far. */
  readonly connections: number;
  /** Delivers nothing and closes nothing from now on, like a server whose processes are stopped. */
  freeze(): void;
  /** Freezes when the database has sent this many packets more; the next one is lost. */
  freezeAfter(packets: number): void;
  readonly isFrozen: boolean;
  /** Cuts all connections and refuses new ones, like a server that is not running. */
  cut(): void;
  /** Replaces the number of rows in the result of every INSERT from now on. */
  pretendInserted(count: number): void;
  /** Works normally again, and delivers the data that was held back while frozen. */
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
  let pretended: number | undefined;
  let packetsLeft = Infinity;

  const freeze = () => {
    state = 'frozen';
    for (const socket of sockets) socket.pause();
  };

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
      socket.on('data', (chunk: Buffer) => {
        if (socket === upstream && packetsLeft-- <= 0) {
          freeze();
          return;
        }
        other.write(pretended === undefined ? chunk : withCount(chunk, pretended));
      });
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      if (state === 'frozen') socket.pause();
    }
  });
  const { port: proxyPort, close } = await startServer(server);

  const url = new URL(databaseUrl.replace(/\/\/(.*@)?[^/]*\//, '//$1placeholder/'));
  url.host = `127.0.0.1:${proxyPort}`;
  url.searchParams.delete('host');
  url.searchParams.delete('port');

  return {
    url: url.href,
    get connections() {
      return connections;
    },
    freeze,
    freezeAfter(packets) {
      packetsLeft = packets;
    },
    get isFrozen() {
      return state === 'frozen';
    },
    cut() {
      state = 'cut';
      for (const socket of sockets) socket.destroy();
    },
    pretendInserted(count) {
      pretended = count;
    },
    restore() {
      state = 'open';
      for (const socket of sockets) socket.resume();
    },
    close,
  };
}

/** The tag of CommandComplete is "INSERT 0 " and the number of rows; one digit does not change the length of the message. */
function withCount(chunk: Buffer, count: number): Buffer {
  return Buffer.from(
    chunk.toString('latin1').replaceAll(/INSERT 0 \d\0/g, `INSERT 0 ${count}\0`),
    'latin1',
  );
}
