import {
  CHUNKED,
  LAST_CHUNK,
  plantHead,
  openConnection,
  readResponses,
  type RawResponse,
} from '../setup/http/raw-http.js';
import { settled } from '../setup/time/settled.js';

/** A body and its framing. */
export interface WireRequest {
  readonly body: Buffer;
  /** The sizes of the chunks, which are repeated until the end; undefined: the body has a Content-Length. */
  readonly chunks: readonly number[] | undefined;
}

/** The bytes of a request that sends a plant. */
export function bytesOf(token: string, { body, chunks }: WireRequest): Buffer {
  const framing = chunks === undefined ? `Content-Length: ${body.length}` : CHUNKED;
  const head = Buffer.from(plantHead(token, ['Content-Type: application/json', framing]));
  if (chunks === undefined) return Buffer.concat([head, body]);
  const parts: Buffer[] = [head];
  for (let start = 0, i = 0; start < body.length; i++) {
    const chunk = body.subarray(start, start + chunks[i % chunks.length]!);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
    start += chunk.length;
  }
  return Buffer.concat([...parts, Buffer.from(LAST_CHUNK)]);
}

/**
 * Sends bytes in pieces on a new connection, and reads `count` responses, or fewer if the server closes the connection.
 *
 * @param cuts where the bytes are cut: any numbers, of which the remainder counts; or the length of all pieces
 */
export async function sendInPieces(
  port: number,
  bytes: Buffer,
  cuts: readonly number[] | number,
  count: number,
): Promise<RawResponse[]> {
  const socket = await openConnection(port);
  socket.setNoDelay(true);
  try {
    const responses = readResponses(socket, count);
    const positions =
      typeof cuts === 'number'
        ? Array.from({ length: Math.floor(bytes.length / cuts) }, (_, i) => i * cuts)
        : cuts.map((cut) => cut % bytes.length);
    const ends = [...positions, bytes.length].sort((a, b) => a - b);
    let start = 0;
    for (const end of ends) {
      socket.write(bytes.subarray(start, end));
      start = end;
      // The service, which is in the same process, reads this piece before the next one is sent.
      await settled();
    }
    return await responses;
  } finally {
    socket.destroy();
  }
}
