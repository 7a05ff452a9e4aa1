import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { connect as connectSocket, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { makeDataDir } from '../../../test/setup/data-dir.js';
import { settled } from '../../../test/setup/settled.js';
import { until } from '../../../test/setup/until.js';
import { createPostgresSocketServer } from './postgres-socket-server.js';

describe('the socket server of the embedded Postgres', () => {
  let dir: string;
  let database: PGlite;
  let server: Server;

  beforeAll(async () => {
    dir = await makeDataDir();
    database = await PGlite.create(join(dir, 'postgres'));
    server = createPostgresSocketServer(database);
    await once(server.listen(join(dir, '.s.PGSQL.5432')), 'listening');
    await database.exec('CREATE TABLE numbers (id int PRIMARY KEY)');
  });
  beforeEach(() => database.exec('TRUNCATE numbers'));
  afterAll(async () => {
    server.close();
    await database.close();
    await rm(dir, { recursive: true });
  });

  const connect = async () => {
    const client = new pg.Client({ host: dir, user: 'postgres', database: 'postgres' });
    await client.connect();
    return client;
  };
  const numbers = async () => (await database.query('SELECT id FROM numbers ORDER BY id')).rows;

  it('keeps every acknowledged row while other connections come, fail and go', async () => {
    const acknowledged: { id: number }[] = [];
    const writer = await connect();
    let isWriting = true;
    const visit = async () => {
      while (isWriting) {
        const visitor = await connect();
        await visitor.query('SELECT $1::int', ['x']).catch(() => undefined);
        await visitor.query('SELECT $1::text', ['y']);
        await visitor.end();
      }
    };
    const visits = [visit(), visit(), visit()];
    for (let id = 1; id <= 300; id++) {
      const { rows } = await writer.query<{ id: number }>(
        'INSERT INTO numbers VALUES ($1) RETURNING id',
        [id],
      );
      acknowledged.push(...rows);
    }
    isWriting = false;
    await Promise.all(visits);
    await writer.end();
    expect(acknowledged).toHaveLength(300);
    expect(await numbers()).toEqual(acknowledged);
  });

  it('keeps other connections out of a transaction', async () => {
    const [first, second] = [await connect(), await connect()];
    await first.query('BEGIN');
    await first.query('INSERT INTO numbers VALUES (1)');
    const count = second.query('SELECT count(*)::int AS count FROM numbers');
    await first.query('ROLLBACK');
    expect((await count).rows).toEqual([{ count: 0 }]);
    await first.end();
    await second.end();
  });

  it('rolls back the transaction of a connection that is cut', async () => {
    const first = await connect();
    first.on('error', () => undefined);
    await first.query('BEGIN');
    await first.query('INSERT INTO numbers VALUES (1)');
    (
      first as unknown as { connection: { stream: { destroy(): void } } }
    ).connection.stream.destroy();
    const second = await connect();
    expect((await second.query('SELECT * FROM numbers')).rows).toEqual([]);
    await second.end();
  });

  it('rolls back the transaction of a connection that is reset, because its client left a response unread', async () => {
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const first = await connect();
    first.on('error', () => undefined);
    const [socket] = await accepted;
    await first.query('BEGIN');
    await first.query('INSERT INTO numbers VALUES (1)');
    const { stream } = (first as unknown as { connection: { stream: Socket } }).connection;
    stream.pause();
    const sent = socket.bytesWritten;
    // More than Node reads from a paused socket.
    stream.write(message('Q', "SELECT repeat('x', 1000000)\0"));
    await until(() => socket.bytesWritten > sent);
    const reset = once(socket, 'error');
    stream.destroy();
    expect(await reset).toMatchObject([{ code: 'ECONNRESET' }]);
    const second = await connect();
    await second.query('INSERT INTO numbers VALUES (2)');
    await second.end();
    const third = await connect();
    expect((await third.query('SELECT * FROM numbers')).rows).toEqual([{ id: 2 }]);
    await third.end();
  });

  it('serves the others after a message that Postgres cannot read', async () => {
    const client = await connect();
    client.on('error', () => undefined);
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
    // The message says that a value has a length of minus two.
    stream.write(message('B', '\0\0\0\0\0\x01\xff\xff\xff\xfe'));
    stream.write(message('S', ''));
    await Promise.race([once(stream, 'data'), once(stream, 'close')]);
    stream.destroy();
    const other = await connect();
    expect((await other.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await other.end();
  });

  it('reads messages that arrive byte by byte', async () => {
    const socket = connectSocket(join(dir, '.s.PGSQL.5432'));
    let received = '';
    socket.on('data', (chunk) => (received += chunk.toString('latin1')));
    const parameters = Buffer.from('user\0postgres\0database\0postgres\0\0');
    const head = Buffer.alloc(8);
    head.writeInt32BE(head.length + parameters.length);
    head.writeInt32BE(PROTOCOL_3_0, 4);
    for (const byte of [...head, ...parameters, ...message('Q', "SELECT 'a row'\0")]) {
      await new Promise((resolve) => socket.write(Buffer.of(byte), resolve));
      await settled();
    }
    await until(() => received.includes('a row'));
    socket.destroy();
  });

  it.each([
    ['a message shorter than its length field', Buffer.from('Q\xff\xff\xff\xff', 'latin1')],
    ['COPY, which PGlite cannot take from a client', message('Q', 'COPY numbers FROM STDIN\0')],
    [
      'COPY in the extended protocol',
      Buffer.concat([message('P', '\0COPY numbers FROM STDIN\0\0\0'), message('S', '')]),
    ],
  ])('closes the connection at %s, and serves the others', async (_kind, bytes) => {
    const client = await connect();
    client.on('error', () => undefined);
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
    stream.write(bytes);
    await expectClosed(stream);
    const other = await connect();
    expect((await other.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await other.end();
  });

  it('closes the connection of a cancel request at once, in the midst of a transaction that goes on', async () => {
    const client = await connect();
    await client.query('BEGIN');
    await client.query('INSERT INTO numbers VALUES (1)');
    const canceler = connectSocket(join(dir, '.s.PGSQL.5432'));
    canceler.write(CANCEL_REQUEST);
    await expectClosed(canceler);
    await client.query('COMMIT');
    expect(await numbers()).toEqual([{ id: 1 }]);
    await client.end();
  });

  it('keeps other connections out of a transaction that has failed, until it ends', async () => {
    const [first, second] = [await connect(), await connect()];
    await first.query('BEGIN');
    await expect(first.query('SELECT 1/0')).rejects.toThrow('division by zero');
    const inserted = second.query('INSERT INTO numbers VALUES (2)');
    await first.query('ROLLBACK');
    await inserted;
    expect(await numbers()).toEqual([{ id: 2 }]);
    await first.end();
    await second.end();
  });

  it('takes COPY in a value for text', async () => {
    const client = await connect();
    const text = 'COPY numbers FROM STDIN';
    expect((await client.query('SELECT $1::text AS text', [text])).rows).toEqual([{ text }]);
    await client.end();
  });

  it('serves a connection after an error', async () => {
    const client = await connect();
    await expect(client.query('SELECT 1/0')).rejects.toThrow('division by zero');
    await expect(client.query('SELECT $1::int', ['x'])).rejects.toThrow('invalid input syntax');
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await client.end();
  });
});

const PROTOCOL_3_0 = 196608;

/** A request to cancel the query of a connection: length, code, process and secret. */
const CANCEL_REQUEST = Buffer.from(
  '00000010 04d2162e 00000001 00000001'.replaceAll(' ', ''),
  'hex',
);

/** A message, encoded for the protocol. */
function message(type: string, body: string): Buffer {
  const text = Buffer.from(body);
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(text.length + 4, 1);
  return Buffer.concat([head, text]);
}

/** Expects the server to close a connection without a response. */
async function expectClosed(socket: Socket): Promise<void> {
  const outcome = new Promise((resolve) => {
    socket.once('data', () => resolve('response'));
    socket.once('close', () => resolve('closed'));
  });
  const result = await outcome;
  socket.destroy();
  expect(result).toBe('closed');
}
