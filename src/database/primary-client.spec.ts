import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Client, type ClientConfig } from 'pg';
import { useResources } from '../../test/setup/jest/resources.js';
import { holdTimers } from '../../test/setup/time/held-timers.js';
import { settled } from '../../test/setup/time/settled.js';
import {
  openScriptedPostgres,
  openServerIn,
  type Script,
  stateOf,
  type ScriptedPostgres,
} from '../../test/setup/database/scripted-postgres.js';
import { isUnavailable } from './postgres-errors.js';
import { primaryClient } from './primary-client.js';

const TIMEOUT_MS = 3000;

/** A third: there are two servers, and the connection itself takes time, too. */
const SHARE_MS = 1000;

describe('primaryClient', () => {
  // Before the resources are closed, which takes time: Jest calls these hooks in their order.
  afterEach(() => void jest.useRealTimers());
  const resources = useResources();

  const start = (script?: Script) => openScriptedPostgres(resources, script);

  const startIn = (state: { isPrimary: boolean }) => openServerIn(resources, state);

  type PrimaryClient = new (config: ClientConfig) => Client;

  const clientFor = (...servers: ScriptedPostgres[]): PrimaryClient =>
    primaryClient(servers, TIMEOUT_MS);

  async function connect(PrimaryClient: PrimaryClient): Promise<Client> {
    const client = new PrimaryClient({ user: 'plants', database: 'plants' });
    client.on('error', () => undefined);
    resources.defer(() => client.end());
    return client.connect();
  }

  const logins = (...servers: ScriptedPostgres[]) =>
    servers.map(({ connections }) => connections.length);

  it('connects to the server that takes writes, and closes the connections of the search', async () => {
    const standby = await startIn({ isPrimary: false });
    const primary = await startIn({ isPrimary: true });
    const client = await connect(clientFor(standby, primary));
    await client.query('SELECT 1');
    await Promise.all([standby.connections[0]!.closed, primary.connections[0]!.closed]);
    expect(primary.statements.at(-1)).toMatchObject({
      text: 'SELECT 1',
      connection: { serial: 2 },
    });
    expect(client).toMatchObject({ host: primary.host, port: primary.port });
  });

  it('asks the servers in the order of the address, and no more than it needs', async () => {
    const first = await startIn({ isPrimary: true });
    const second = await startIn({ isPrimary: true });
    await connect(clientFor(first, second));
    expect(logins(first, second)).toEqual([2, 0]);
  });

  it('first asks the server that took writes last, and leaves its connections alone', async () => {
    const standby = await startIn({ isPrimary: false });
    const primary = await startIn({ isPrimary: true });
    const PrimaryClient = clientFor(standby, primary);
    const client = await connect(PrimaryClient);
    await connect(PrimaryClient);
    expect(logins(standby, primary)).toEqual([1, 4]);
    await expect(client.query('SELECT 1')).resolves.toBeDefined();
  });

  it('searches once for connections that are opened at the same moment', async () => {
    const standby = await startIn({ isPrimary: false });
    const primary = await startIn({ isPrimary: true });
    const PrimaryClient = clientFor(standby, primary);
    await Promise.all([connect(PrimaryClient), connect(PrimaryClient)]);
    expect(logins(standby, primary)).toEqual([1, 3]);
  });

  it('closes all connections to the former primary when another server takes writes', async () => {
    const [was, is] = [{ isPrimary: true }, { isPrimary: false }];
    const [first, second] = [await startIn(was), await startIn(is)];
    const PrimaryClient = clientFor(first, second);
    const former = [await connect(PrimaryClient), await connect(PrimaryClient)];
    const ended = former.map(
      (client) => new Promise<void>((resolve) => client.once('end', resolve)),
    );
    was.isPrimary = false;
    is.isPrimary = true;
    const client = await connect(PrimaryClient);
    await Promise.all(ended);
    expect(client).toMatchObject({ port: second.port });
    await expect(client.query('SELECT 1')).resolves.toBeDefined();
  });

  it('forgets a client that has ended', async () => {
    const former = { isPrimary: true };
    const next = { isPrimary: false };
    const PrimaryClient = clientFor(await startIn(former), await startIn(next));
    const ended = await connect(PrimaryClient);
    await ended.end();
    const destroy = jest.spyOn(ended.connection.stream, 'destroy');
    former.isPrimary = false;
    next.isPrimary = true;
    await connect(PrimaryClient);
    expect(destroy).not.toHaveBeenCalled();
  });

  it('asks each server once, also the one that took writes last', async () => {
    const state = { isPrimary: true };
    const [first, second] = [await startIn({ isPrimary: false }), await startIn(state)];
    const PrimaryClient = clientFor(first, second);
    await connect(PrimaryClient);
    state.isPrimary = false;
    await expect(connect(PrimaryClient)).rejects.toThrow(
      `(127.0.0.1:${second.port}: read-only; 127.0.0.1:${first.port}: read-only)`,
    );
  });

  it('searches again after a search that failed', async () => {
    const state = { isPrimary: false };
    const PrimaryClient = clientFor(await startIn(state));
    await expect(connect(PrimaryClient)).rejects.toThrow('no server takes writes');
    state.isPrimary = true;
    await expect(connect(PrimaryClient)).resolves.toBeDefined();
  });

  it('says of each server why it cannot be used', async () => {
    const standby = await startIn({ isPrimary: false });
    const broken = await start({ run: ({ connection }) => void connection.cut() });
    const stranger = await start({ login: () => ({ error: { code: '28P01' } }) });
    const error: unknown = await connect(clientFor(standby, broken, stranger)).catch(
      (error: unknown) => error,
    );
    expect(isUnavailable(error)).toBe(true);
    expect((error as Error).message).toBe(
      `no server takes writes (127.0.0.1:${standby.port}: read-only; ` +
        `127.0.0.1:${broken.port}: Connection terminated unexpectedly; ` +
        `127.0.0.1:${stranger.port}: no (28P01))`,
    );
  });

  it.each(['login', 'run'] as const)(
    'gives a server that hangs (%s) its share of the time, and asks the next one',
    async (step) => {
      const arrived = Promise.withResolvers<void>();
      const hang = () => {
        arrived.resolve();
        return new Promise<undefined>(() => undefined);
      };
      const frozen = await start({ [step]: hang });
      const primary = await startIn({ isPrimary: true });
      holdTimers();
      const connected = connect(clientFor(frozen, primary));
      await arrived.promise;
      jest.advanceTimersByTime(SHARE_MS - 1);
      await settled();
      expect(jest.getTimerCount()).toBeGreaterThan(0);
      jest.advanceTimersByTime(1);
      expect(await connected).toMatchObject({ port: primary.port });
    },
  );

  it('does not connect after its pool has given up during the search', async () => {
    const search = Promise.withResolvers<void>();
    const primary = await start({
      run: async (statement) => {
        await search.promise;
        return stateOf(statement, true);
      },
    });
    const PrimaryClient = clientFor(primary);
    const client = new PrimaryClient({ user: 'plants' });
    const connected = client.connect();
    client.connection.stream.destroy();
    search.resolve();
    await expect(connected).rejects.toThrow('Connection terminated');
    expect(logins(primary)).toEqual([1]);
  });

  it('calls back as a client of pg does', async () => {
    const state = { isPrimary: true };
    const PrimaryClient = clientFor(await startIn(state));
    const client = new PrimaryClient({ user: 'plants' });
    expect(await new Promise((resolve) => client.connect(resolve))).toBeNull();
    await client.end();
    state.isPrimary = false;
    const error = await new Promise((resolve) =>
      new PrimaryClient({ user: 'plants' }).connect(resolve),
    );
    expect(error).toMatchObject({ message: expect.stringContaining('no server takes writes') });
  });

  it('passes the settings of the pool on', async () => {
    const primary = await startIn({ isPrimary: true });
    const client = new (clientFor(primary))({ user: 'gardener', database: 'herbs' });
    await client.connect();
    await client.end();
    const settings = { user: 'gardener', database: 'herbs' };
    expect(primary.connections).toMatchObject([{ parameters: settings }, { parameters: settings }]);
  });
});
