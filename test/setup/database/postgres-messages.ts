import type { Socket } from 'node:net';

// The protocol is version 3.0 (PostgreSQL documentation, chapter "Frontend/Backend Protocol").

/** The fields of an error or a notice that clients use. */
export interface PostgresReport {
  readonly code: string;
  readonly message?: string;
  readonly routine?: string;
}

/** What the server sends; without an error and rows, an empty result. */
export interface Reply {
  readonly rows?: readonly object[];
  /** The tag of the command, as `COMMIT`; by default that of a SELECT. */
  readonly command?: string;
  readonly notice?: PostgresReport;
  readonly error?: PostgresReport;
}

/** Reads the messages of a client; the first one has no type. */
export async function* readMessages(
  socket: Socket,
): AsyncGenerator<{ type: string; body: Buffer }> {
  let buffer = Buffer.alloc(0);
  let start = 0;
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      buffer = Buffer.concat([buffer, chunk]);
      for (;;) {
        if (buffer.length < start + 4) break;
        const end = start + buffer.readInt32BE(start);
        if (buffer.length < end) break;
        const type = buffer.toString('latin1', 0, start);
        const body = buffer.subarray(start + 4, end);
        buffer = buffer.subarray(end);
        start = 1;
        yield { type, body };
      }
    }
  } catch {
    // The connection was cut.
  }
}

/** The parameters of the first message, which follow the version of the protocol. */
export function readParameters(body: Buffer): Record<string, string> {
  const words = body.subarray(4).toString().split('\0');
  return Object.fromEntries(
    words.flatMap((word, i) => (i % 2 === 0 && word !== '' ? [[word, words[i + 1]!]] : [])),
  );
}

/** @returns the name of the statement and its values as texts */
export function readBind(body: Buffer): [string, (string | null)[]] {
  const nameAt = body.indexOf(0) + 1;
  const nameEnd = body.indexOf(0, nameAt);
  let at = nameEnd + 1;
  at += 2 + 2 * body.readInt16BE(at);
  const count = body.readInt16BE(at);
  at += 2;
  const values = Array.from({ length: count }, () => {
    const length = body.readInt32BE(at);
    at += 4;
    if (length < 0) return null;
    at += length;
    return body.toString('utf8', at - length, at);
  });
  return [body.toString('utf8', nameAt, nameEnd), values];
}

const READY = message('Z', Buffer.from('I'));

export const LOGGED_IN = Buffer.concat([message('R', int32(0)), READY]);

export function encodeError(error: PostgresReport): Buffer {
  return report('E', error);
}

export function encodeReply(reply: Reply, wasParsed: boolean, isExtended: boolean): Buffer {
  const parts: Buffer[] = [];
  if (reply.notice !== undefined) parts.push(report('N', reply.notice));
  if (reply.error !== undefined) return Buffer.concat([...parts, encodeError(reply.error), READY]);
  if (wasParsed) parts.push(message('1'));
  if (isExtended) parts.push(message('2'));
  const rows = (reply.rows ?? []) as Record<string, unknown>[];
  const command = reply.command ?? `SELECT ${rows.length}`;
  const columns = Object.entries(rows[0] ?? {});
  const fields = columns.map(([column, value]) =>
    Buffer.concat([text(column), int32(0), int16(0), int32(typeOf(value)), Buffer.alloc(8)]),
  );
  parts.push(message('T', int16(fields.length), ...fields));
  for (const row of rows) {
    const cells = columns.map(([column]) => {
      const cell = Buffer.from(String(row[column]));
      return Buffer.concat([int32(cell.length), cell]);
    });
    parts.push(message('D', int16(cells.length), ...cells));
  }
  return Buffer.concat([...parts, message('C', text(command)), READY]);
}

/** The numbers of the types bool, int4 and text. */
function typeOf(value: unknown): number {
  if (typeof value === 'boolean') return 16;
  return typeof value === 'number' ? 23 : 25;
}

function report(type: 'E' | 'N', { code, message: words = 'no', routine }: PostgresReport): Buffer {
  const fields = [`C${code}`, `M${words}`, ...(routine === undefined ? [] : [`R${routine}`])];
  return message(type, ...fields.map(text), Buffer.alloc(1));
}

function message(type: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
