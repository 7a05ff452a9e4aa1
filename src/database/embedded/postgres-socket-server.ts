import { createServer, type Server, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';

/**
 * Makes a server on which many connections use PGlite's only session. A connection holds the session until
 * its query is done and its transaction has ended. (With PGlite's own server, a connection that
 * closed at the wrong moment rolled back the transaction of another one.)
 *
 * The protocol is version 3.0 (PostgreSQL documentation, chapter "Frontend/Backend Protocol").
 */
export function createPostgresSocketServer(database: PGlite): Server {
  let turn: Promise<void> = Promise.resolve();
  const takeTurn = (work: () => Promise<void>): Promise<void> => {
    const result = turn.then(work);
    turn = result.catch(() => undefined);
    return result;
  };
  return createServer((socket) => {
    socket.on('error', () => socket.destroy());
    serve(database, socket, takeTurn).catch(() => socket.destroy());
  });
}

async function serve(
  database: PGlite,
  socket: Socket,
  takeTurn: (work: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const units = readUnits(socket);
  for (let unit = await units.next(); unit.done !== true; unit = await units.next()) {
    const first = unit.value;
    await takeTurn(async () => {
      let isInTransaction = true;
      try {
        isInTransaction = await run(database, socket, first);
        while (isInTransaction) {
          const next = await units.next();
          if (next.done === true) return;
          isInTransaction = await run(database, socket, next.value);
        }
      } finally {
        // However the connection ended: otherwise, the next one would work in this transaction, and lose its rows.
        if (isInTransaction) await database.exec('ROLLBACK');
      }
    });
  }
  socket.end();
}

/** @returns whether the connection is in a transaction now */
async function run(database: PGlite, socket: Socket, unit: readonly Buffer[]): Promise<boolean> {
  let last: Uint8Array = new Uint8Array();
  for (const message of unit) {
    const response = await database.execProtocolRaw(message);
    if (response.length > 0) last = response;
    if (socket.writable) socket.write(response);
  }
  // ReadyForQuery ends every unit. Its last byte is the state: I(dle), T(ransaction) or E (failed transaction).
  const state = String.fromCharCode(last.at(-1) ?? 0);
  return state === 'T' || state === 'E';
}

const SSL_REQUEST = 80877103;
const GSS_ENCRYPTION_REQUEST = 80877104;
const CANCEL_REQUEST = 80877102;

/** After Sync, Query, CopyDone and CopyFail, the server reports that it is ready. */
const ENDS_UNIT = new Set(['S', 'Q', 'c', 'f']);
const TERMINATE = 'X';

/** COPY … FROM STDIN: PGlite would block the process while it waits for the data, so the connection is closed. */
function isCopyFromClient(type: string, message: Buffer): boolean {
  return (type === 'Q' || type === 'P') && /\bcopy\b[^]*\bfrom\s+stdin\b/i.test(message.toString());
}

/** Splits the messages of a connection into units. A unit ends with a message after which the server is ready. */
async function* readUnits(socket: Socket): AsyncGenerator<Buffer[], void> {
  let buffer: Buffer = Buffer.alloc(0);
  let isStarted = false;
  let unit: Buffer[] = [];
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    buffer = Buffer.concat([buffer, chunk]);
    for (;;) {
      // Until the start-up message, a message has no type byte before its length.
      const lengthAt = isStarted ? 1 : 0;
      if (buffer.length < lengthAt + 4) break;
      const end = lengthAt + buffer.readInt32BE(lengthAt);
      // A length below that of its own field is invalid, and would make this loop endless.
      if (end < lengthAt + 4) return;
      if (buffer.length < end) break;
      const message = buffer.subarray(0, end);
      buffer = buffer.subarray(end);
      if (!isStarted) {
        const code = message.readInt32BE(4);
        if (code === CANCEL_REQUEST) return;
        if (code === SSL_REQUEST || code === GSS_ENCRYPTION_REQUEST) {
          // N: not supported.
          socket.write('N');
          continue;
        }
        isStarted = true;
        yield [message];
        continue;
      }
      const type = String.fromCharCode(message[0]!);
      if (type === TERMINATE || isCopyFromClient(type, message)) return;
      unit.push(message);
      if (ENDS_UNIT.has(type)) {
        yield unit;
        unit = [];
      }
    }
  }
}
