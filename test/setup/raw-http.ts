import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** What a server wrote, taken apart. */
export interface RawAnswer {
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

/** Opens a connection on which a test decides about every byte. */
export async function openConnection(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

/** Reads answers until the server closes the connection, or `count` of them are complete. */
export async function readAnswers(socket: Socket, count = Infinity): Promise<RawAnswer[]> {
  const answers: RawAnswer[] = [];
  let rest = '';
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    rest += (chunk as Buffer).toString('latin1');
    for (let next = takeAnswer(rest); next !== undefined; next = takeAnswer(rest)) {
      answers.push(next.answer);
      rest = next.rest;
    }
    if (answers.length >= count) break;
  }
  return answers;
}

/** Sends bytes on a new connection and reads the first answer. */
export async function sendRaw(port: number, bytes: string | Buffer): Promise<RawAnswer> {
  const socket = await openConnection(port);
  try {
    socket.write(bytes);
    const [answer] = await readAnswers(socket, 1);
    if (answer === undefined) throw new Error('The connection was closed without an answer.');
    return answer;
  } finally {
    socket.destroy();
  }
}

function takeAnswer(text: string): { answer: RawAnswer; rest: string } | undefined {
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
    answer: {
      status: Number(statusLine!.split(' ')[1]),
      headers,
      body: text.slice(start, start + length),
    },
    rest: text.slice(start + length),
  };
}
