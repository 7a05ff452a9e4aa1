import { once } from 'node:events';
import { connect, type LookupFunction } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { Client, Pool } from 'pg';
import {
  databaseError,
  inTypeOrm,
  systemError,
} from '../../test/setup/database/database-errors.js';
import {
  isCanceled,
  isDatabaseError,
  isMisconfigured,
  isPartUnavailable,
  isPreparedStatementLost,
  isRetryable,
  isTableMissing,
  isUnavailable,
  isUnsupported,
} from './postgres-errors.js';

const KINDS = {
  unavailable: isUnavailable,
  canceled: isCanceled,
  partUnavailable: isPartUnavailable,
  retryable: isRetryable,
  statementLost: isPreparedStatementLost,
  tableMissing: isTableMissing,
  unsupported: isUnsupported,
  misconfigured: isMisconfigured,
};
type Kind = keyof typeof KINDS;

const kindsOf = (error: unknown) =>
  Object.entries(KINDS).flatMap(([kind, isOfKind]) => (isOfKind(error) ? [kind] : []));

/** The port of a service (tcpmux) that no system runs any more, so it refuses connections. */
const CLOSED_PORT = 1;

describe('an SQLSTATE', () => {
  it.each<[string, string, Kind[]]>([
    ['08000', 'Citus lost a worker', ['unavailable', 'partUnavailable']],
    ['08001', 'Citus cannot connect to a worker', ['unavailable', 'partUnavailable']],
    ['08003', 'Citus has no connection to a worker', ['unavailable', 'partUnavailable']],
    ['08006', 'the connection to a worker broke', ['unavailable', 'partUnavailable']],
    ['08007', 'nobody knows how a transaction ended', ['unavailable']],
    ['08004', 'the server rejected the connection', ['unavailable']],
    ['08P01', 'PgBouncer has no server', ['unavailable']],
    ['0A000', 'the table was changed', ['statementLost', 'unsupported']],
    ['22021', 'a text is not UTF-8', []],
    ['23505', 'the row is there', []],
    ['23514', 'a constraint forbids the row', []],
    ['25006', 'a former primary is read-only', ['unavailable']],
    ['25P02', 'the transaction has failed before', []],
    ['25P03', 'the transaction was idle for too long', ['unavailable', 'retryable']],
    ['25P04', 'the transaction took too long', ['unavailable', 'retryable']],
    ['26000', 'there is no such statement', ['statementLost']],
    ['28000', 'pg_hba.conf has no line for the user', ['unavailable', 'misconfigured']],
    ['28P01', 'the password is wrong', ['unavailable', 'misconfigured']],
    ['3D000', 'there is no such database', ['unavailable', 'misconfigured']],
    ['40001', 'serialization failure', ['unavailable', 'retryable']],
    ['40002', 'a constraint failed at the commit', []],
    ['40P01', 'deadlock', ['unavailable', 'retryable']],
    ['42501', 'the user has no right', ['unavailable', 'misconfigured']],
    ['42601', 'the syntax is wrong', []],
    ['42703', 'there is no such column', []],
    ['42883', 'there is no such function', ['unsupported']],
    ['42P01', 'there is no such table', ['tableMissing']],
    ['42P05', 'the statement is there', ['statementLost']],
    ['53100', 'the disk is full', ['unavailable']],
    ['53200', 'memory is exhausted', ['unavailable']],
    ['53300', 'there are too many connections', ['unavailable']],
    ['53400', 'a limit of the configuration is reached', ['unavailable']],
    ['54001', 'the statement is too complex', []],
    ['55P03', 'a lock is not available', ['unavailable', 'canceled']],
    ['55006', 'the object is in use', []],
    ['57014', 'the statement was canceled', ['unavailable', 'canceled']],
    ['57P01', 'an administrator ended the connection', ['unavailable', 'retryable']],
    ['57P02', 'another connection crashed the server', ['unavailable', 'retryable']],
    ['57P03', 'the server is starting', ['unavailable']],
    ['57P05', 'the session was idle for too long', ['unavailable', 'retryable']],
    ['58000', 'its system fails', ['unavailable']],
    ['58030', 'its disk fails', ['unavailable']],
    ['58P01', 'a file of it is gone', ['unavailable']],
    ['P0001', 'a trigger raised it', []],
    ['XX000', 'an internal error', []],
    ['XX001', 'its files are damaged', []],
    ['ZZ999', 'no version of Postgres has it', []],
  ])('%s, because %s, is %j, from pg and from TypeORM', (code, _reason, kinds) => {
    expect(kindsOf(databaseError(code))).toEqual(kinds);
    expect(kindsOf(inTypeOrm(databaseError(code)))).toEqual(kinds);
  });

  it('counts and not the message, which a trigger may choose', () => {
    expect(kindsOf(databaseError('P0001', 'Connection terminated unexpectedly'))).toEqual([]);
  });

  it('XX000 of Citus, whose own server died, is an outage by its message', () => {
    const error = databaseError('XX000', 'postmaster was shut down, exiting');
    expect(kindsOf(error)).toEqual(['unavailable', 'retryable']);
    expect(kindsOf(inTypeOrm(error))).toEqual(['unavailable', 'retryable']);
  });
});

describe('an error that does not come from the server', () => {
  it.each<[string, string, Kind[]]>([
    ['read', 'ECONNRESET', ['unavailable', 'retryable']],
    ['write', 'EPIPE', ['unavailable', 'retryable']],
    ['connect', 'ECONNREFUSED', ['unavailable']],
    ['connect', 'EHOSTUNREACH', ['unavailable']],
    ['connect', 'ENETUNREACH', ['unavailable']],
    ['connect', 'ENOENT', ['unavailable']],
    ['connect', 'ETIMEDOUT', ['unavailable']],
    // No descriptor, no port and no memory is left for the connection; a firewall; the queue of a Unix socket is full.
    ['connect', 'EMFILE', ['unavailable']],
    ['connect', 'ENFILE', ['unavailable']],
    ['connect', 'EADDRNOTAVAIL', ['unavailable']],
    ['connect', 'ENOBUFS', ['unavailable']],
    ['connect', 'EPERM', ['unavailable']],
    ['connect', 'EAGAIN', ['unavailable']],
    ['getaddrinfo', 'ENOTFOUND', ['unavailable']],
    ['getaddrinfo', 'EAI_AGAIN', ['unavailable']],
    ['getaddrinfo', 'EMFILE', ['unavailable']],
    ['getaddrinfo', 'EBUSY', ['unavailable']],
  ])('of the call %s with the code %s is %j', (syscall, code, kinds) => {
    expect(kindsOf(systemError(code, syscall))).toEqual(kinds);
    expect(kindsOf(inTypeOrm(systemError(code, syscall)))).toEqual(kinds);
  });

  it.each<[string, Kind[]]>([
    ['ECONNRESET', ['unavailable', 'retryable']],
    ['ERR_INVALID_ARG_TYPE', []],
    // The connection of Citus to a worker has this code, but this error is not the server's.
    ['08006', ['unavailable']],
  ])('of no call with the code %s is %j', (code, kinds) => {
    expect(kindsOf(Object.assign(new Error('no'), { code }))).toEqual(kinds);
  });

  it.each<[string, Kind[]]>([
    ['Connection terminated unexpectedly', ['unavailable', 'retryable']],
    [
      'Client has encountered a connection error and is not queryable',
      ['unavailable', 'retryable'],
    ],
    ['Connection terminated', ['unavailable']],
    ['Query runner already released. Cannot run queries anymore.', ['unavailable']],
    ['Connection terminated due to connection timeout', ['unavailable']],
    ['Query read timeout', ['unavailable']],
    ['timeout exceeded when trying to connect', ['unavailable']],
    ['timeout expired', ['unavailable']],
    ['The server does not support SSL connections', []],
    ['Query values must be an array', []],
    ['the trigger says: Connection terminated', []],
    ['', []],
  ])('with the message "%s" of pg and no code is %j, also from TypeORM', (message, kinds) => {
    expect(kindsOf(new Error(message))).toEqual(kinds);
    expect(kindsOf(inTypeOrm(new Error(message)))).toEqual(kinds);
  });

  it.each([
    undefined,
    null,
    7,
    new TypeError('x is undefined'),
    Object.assign(new Error('no'), { code: 57 }),
  ])('but from our code is a bug: %p', (error) => {
    expect(kindsOf(error)).toEqual([]);
  });

  it('a pool or a client of pg that was closed is unavailable', async () => {
    const pool = new Pool();
    await pool.end();
    expect(kindsOf(await pool.connect().catch((error: unknown) => error))).toEqual(['unavailable']);
    const client = new Client({ host: '127.0.0.1', port: CLOSED_PORT });
    await client.connect().catch(() => undefined);
    await client.end();
    expect(kindsOf(await client.query('SELECT 1').catch((error: unknown) => error))).toEqual([
      'unavailable',
    ]);
  });

  it('a host that refuses on each of its addresses is unavailable', async () => {
    const lookup: LookupFunction = (_host, _options, callback) => {
      const addresses = ['127.0.0.1', '127.0.0.2'];
      callback(
        null,
        addresses.map((address) => ({ address, family: 4 })),
      );
    };
    const socket = connect({ host: 'h', port: CLOSED_PORT, lookup, autoSelectFamily: true });
    const [error] = (await once(socket, 'error').catch((error: unknown) => [error])) as [
      AggregateError,
    ];
    expect(error).toMatchObject({ message: '', errors: [{}, {}] });
    expect(kindsOf(error)).toEqual(['unavailable']);
  });
});

it.each<[string, unknown, boolean]>([
  ['pg, from the server', databaseError('42601'), true],
  ['TypeORM, from the server', inTypeOrm(databaseError('42601')), true],
  ['TypeORM, whose connection was lost', inTypeOrm(new Error('Connection terminated')), false],
  ['the network', systemError('ECONNREFUSED'), false],
  ['our code', new TypeError('x is undefined'), false],
  ['a throw of nothing', undefined, false],
])('an error of %s comes from the database: %p', (_source, error, is) => {
  expect(isDatabaseError(error)).toBe(is);
});
