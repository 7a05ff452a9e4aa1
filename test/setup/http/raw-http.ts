import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expectDocumented } from './documented.js';

/** A response, parsed. */
export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The head of a request that sends a plant. */
export function plantHead(token: string, lines: readonly string[]): string {
  return [
    'POST /plants HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${token}`,
    ...lines,
    '',
    '',
  ].join('\r\n');
}

/** A request that stores a plant. */
export function plantRequest(token: string, body: string, lines: readonly string[] = []): string {
  const aboutBody = ['Content-Type: application/json', `Content-Length: ${body.length}`];
  return plantHead(token, [...lines, ...aboutBody]) + body;
}

/**
 * Sends the head of a request that sends a plant, and waits until the service reads the body. The request is in flight
 * until the test writes that.
 *
 * @param lines of the head, besides those about the body
 * @throws Error when the response is not 100 Continue
 */
export async function beginPlant(
  socket: Socket,
  token: string,
  body: string,
  lines: readonly string[] = [],
): Promise<void> {
  const length = `Content-Length: ${body.length}`;
  const aboutBody = ['Content-Type: application/json', length, 'Expect: 100-continue'];
  socket.write(plantHead(token, [...aboutBody, ...lines]));
  const [response] = await readResponses(socket, 1);
  if (response?.status !== 100) throw new Error(`The response is ${response?.status}, not 100.`);
}

/**
 * The bytes that a test wrote to a connection, as Latin-1, and how many responses it has read. What is no request, such as
 * bytes that the parser refuses, is the last thing on a connection, and its response is that of no operation.
 */
const exchanges = new WeakMap<Socket, { written: string; read: number }>();

/** Opens a connection for a test that sends its own bytes. */
export async function openConnection(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  await once(socket, 'connect');
  const exchange = { written: '', read: 0 };
  exchanges.set(socket, exchange);
  const write = socket.write.bind(socket);
  socket.write = (bytes: string | Buffer) => {
    exchange.written += Buffer.from(bytes).toString('latin1');
    return write(bytes);
  };
  return socket;
}

/**
 * Reads responses until the server closes the connection, or `count` of them are complete.
 *
 * @throws Error when a response is not as the OpenAPI document says of the request that was written
 */
export async function readResponses(socket: Socket, count = Infinity): Promise<RawResponse[]> {
  const responses = await readUnchecked(socket, count);
  const exchange = exchanges.get(socket)!;
  const requests = exchange.written.match(/[A-Z]+ \S+(?= HTTP\/1\.[01]\r\n)/g) ?? [];
  for (const response of responses) {
    await check(response, requests[exchange.read]);
    if (response.status >= 200) exchange.read++;
  }
  return responses;
}

/**
 * @param received a whole response as Latin-1, a character for each byte
 * @param request such as `POST /plants`
 * @returns the body of the response
 * @throws UndocumentedError when the response is not as the OpenAPI document says
 */
export async function bodyOf(received: string, request: string): Promise<string> {
  const { response } = takeResponse(received)!;
  await check(response, request);
  return response.body;
}

async function check(
  { status, headers, body }: RawResponse,
  request: string | undefined,
): Promise<void> {
  const header = (name: string) => headers[name.toLowerCase()] ?? null;
  const text = Buffer.from(body, 'latin1').toString();
  await expectDocumented({ status, header, body: text, ...(request && { request }) });
}

/** Reads responses of a server that is only a part of the service, so that the OpenAPI document does not describe them. */
export async function readUnchecked(socket: Socket, count = Infinity): Promise<RawResponse[]> {
  const responses: RawResponse[] = [];
  let rest = '';
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    rest += (chunk as Buffer).toString('latin1');
    for (let next = takeResponse(rest); next !== undefined; next = takeResponse(rest)) {
      responses.push(next.response);
      rest = next.rest;
    }
    if (responses.length >= count) break;
  }
  return responses;
}

/** Sends bytes on a new connection and reads the first response. */
export async function sendRaw(port: number, bytes: string | Buffer): Promise<RawResponse> {
  const socket = await openConnection(port);
  try {
    socket.write(bytes);
    const [response] = await readResponses(socket, 1);
    if (response === undefined) throw new Error('The connection was closed without a response.');
    return response;
  } finally {
    socket.destroy();
  }
}

function takeResponse(text: string): { response: RawResponse; rest: string } | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [statusLine, ...lines] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
  const start = end + 4;
  const length = Number(headers['content-length'] ?? 0);
  if (text.length < start + length) return undefined;
  return {
    response: {
      status: Number(statusLine!.split(' ')[1]),
      headers,
      body: text.slice(start, start + length),
    },
    rest: text.slice(start + length),
  };
}

/** The bytes of a body with `Transfer-Encoding: chunked`. */
export function chunked(pieces: readonly string[]): string {
  return pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('');
}

export const CHUNKED = 'Transfer-Encoding: chunked';
export const LAST_CHUNK = '0\r\n\r\n';
