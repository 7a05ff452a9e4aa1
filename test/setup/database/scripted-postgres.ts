import { createServer, type Socket } from 'node:net';
import { SESSION_SETTINGS } from '../../../src/database/session.js';
import {
  encodeError,
  encodeReply,
  LOGGED_IN,
  readBind,
  readMessages,
  readParameters,
  type Reply,
  type PostgresReport,
} from './postgres-messages.js';
import { startServer } from '../http/open-server.js';
import type { Resources } from '../jest/resources.js';

/** A statement that a client sent. */
export interface Statement {
  readonly text: string;
  readonly values: readonly (string | null)[];
  /** The name under which it is prepared; empty if it is not. */
  readonly name: string;
  /** Whether it was sent with its text, to be parsed. */
  readonly isParsed: boolean;
  readonly connection: Connection;
}

export interface Connection {
  /** Connections are counted from 1. */
  readonly serial: number;
  /** The parameters with which the client opened it. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly closed: Promise<unknown>;
  /** Breaks it. */
  cut(): void;
}

type Response = Reply | undefined | Promise<Reply | undefined>;

export interface Script {
  /** Responds to a statement; a promise that stays open hangs the connection. */
  readonly run?: ((statement: Statement) => Response) | undefined;
  /** Responds to a login, which succeeds unless there is an error. */
  readonly login?: ((connection: Connection) => Response) | undefined;
  /** Other responses to what is asked about the server when a connection begins: rows, an error, or none. */
  readonly settings?: Readonly<Record<string, readonly object[] | PostgresReport | 'silence'>>;
}

/** A server that speaks as much of the protocol of Postgres as statements need, and fails as its script says. */
export interface ScriptedPostgres {
  readonly host: string;
  readonly port: number;
  readonly url: string;
  /** All connections so far. */
  readonly connections: readonly Connection[];
  /** All statements so far, without those of TypeORM about the server. */
  readonly statements: readonly Statement[];
  close(): Promise<void>;
}

/** What TypeORM and the service ask when they connect. */
const SETTINGS = new Map<string, readonly object[]>([
  [SESSION_SETTINGS, []],
  ['SELECT version()', [{ version: 'PostgreSQL 18.0' }]],
  ['SELECT * FROM current_schema()', [{ current_schema: 'public' }]],
  ['SELECT * FROM current_database()', [{ current_database: 'plants' }]],
]);

export async function startScriptedPostgres(script: Script = {}): Promise<ScriptedPostgres> {
  const connections: Connection[] = [];
  const statements: Statement[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    // Not `once` of Node, which rejects when the client resets the connection.
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const run = async (statement: Statement) => {
      const setting = script.settings?.[statement.text] ?? SETTINGS.get(statement.text);
      if (setting === 'silence') return new Promise<never>(() => undefined);
      if (setting !== undefined) return 'code' in setting ? { error: setting } : { rows: setting };
      statements.push(statement);
      return script.run?.(statement);
    };
    const open = (parameters: Connection['parameters']) => {
      const serial = connections.length + 1;
      connections.push({ serial, parameters, closed, cut: () => void socket.destroy() });
      return connections.at(-1)!;
    };
    void serve(socket, open, run, script.login);
  });
  const { port, close } = await startServer(server);
  return {
    host: '127.0.0.1',
    port,
    url: `postgres://plants@127.0.0.1:${port}/plants`,
    connections,
    statements,
    close,
  };
}

async function serve(
  socket: Socket,
  open: (parameters: Connection['parameters']) => Connection,
  run: (statement: Statement) => Response,
  login: Script['login'],
): Promise<void> {
  const prepared = new Map<string, string>();
  let connection: Connection | undefined;
  let name = '';
  let isParsed = false;
  let values: (string | null)[] = [];
  const respond = async (text: string, isSimple: boolean) => {
    const statement = { text, values, name, isParsed, connection: connection! };
    const reply = (await run(statement)) ?? {};
    if (socket.writable) socket.write(encodeReply(reply, isParsed && !isSimple, !isSimple));
    [isParsed, values] = [false, []];
  };
  for await (const { type, body } of readMessages(socket)) {
    if (type === '') {
      connection = open(readParameters(body));
      const { error } = (await login?.(connection)) ?? {};
      if (error !== undefined) socket.end(encodeError(error));
      else socket.write(LOGGED_IN);
    } else if (type === 'P') {
      const [statementName, text] = body.toString().split('\0') as [string, string];
      prepared.set(statementName, text);
      isParsed = true;
    } else if (type === 'B') {
      [name, values] = readBind(body);
    } else if (type === 'S') {
      await respond(prepared.get(name)!, false);
    } else if (type === 'Q') {
      name = '';
      await respond(body.toString().slice(0, -1), true);
    } else if (type === 'X') {
      socket.end();
    }
  }
}

/** Starts a server that is closed with the resources. */
export async function openScriptedPostgres(
  resources: Resources,
  script?: Script,
): Promise<ScriptedPostgres> {
  const server = await startScriptedPostgres(script);
  resources.defer(() => server.close());
  return server;
}
