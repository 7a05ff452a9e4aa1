import { once } from 'node:events';
import { connect, type LookupFunction } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { Client, Pool } from 'pg';
import {
  databaseError,
  inTypeOrm,
  systemError,
} from '../../test/setup/database/database-errors.js';
import { databaseUnavailable } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { StartError } from '../errors/start-error.js';
import {
  isDatabaseError,
  isMisconfigured,
  isOfStatement,
  isPreparedStatementLost,
  isRetryable,
  isTableMissing,
  mayReuseConnection,
  isUnavailable,
} from './postgres-errors.js';

const KINDS = {
  unavailable: isUnavailable,
  ofStatement: isOfStatement,
  ended: mayReuseConnection,
  retryable: isRetryable,
  statementLost: isPreparedStatementLost,
  tableMissing: isTableMissing,
  misconfigured: isMisconfigured,
};
type Kind = keyof typeof KINDS;

const kindsOf = (error: unknown) =>
  Object.entries(KINDS).flatMap(([kind, isOfKind]) => (isOfKind(error) ? [kind] : []));

/** The port of a service (tcpmux) that no system runs any more, so it refuses connections. */
const CLOSED_PORT = 1;

describe('an SQLSTATE', () => {
  it.each<[string, string, Kind[]]>([
    ['08006', 'Citus lost a worker', ['unavailable', 'ofStatement', 'ended']],
    ['08P01', 'PgBouncer has no server', ['unavailable', 'retryable']],
    ['23505', 'the row is there', []],
    ['25006', 'a former primary is read-only', ['unavailable']],
    ['25P02', 'the transaction has failed before', []],
    ['25P03', 'the transaction was idle for too long', ['unavailable', 'retryable']],
    ['26000', 'there is no such statement', ['statementLost']],
    ['28P01', 'the password is wrong', ['unavailable', 'misconfigured']],
    ['3D000', 'there is no such database', ['unavailable', 'misconfigured']],
    ['40001', 'serialization failure', ['unavailable', 'retryable']],
    ['40002', 'a constraint failed at the commit', []],
    ['40P01', 'deadlock', ['unavailable', 'retryable']],
    ['42501', 'the user has no right', ['unavailable', 'misconfigured']],
    ['42601', 'the syntax is wrong', []],
    ['42P01', 'there is no such table', ['tableMissing']],
    ['42P05', 'the statement is there', ['statementLost']],
    ['53100', 'the disk is full', ['unavailable']],
    ['55P03', 'a row is locked', ['unavailable', 'ofStatement', 'ended']],
    ['55006', 'the object is in use', []],
    ['57014', 'the statement was canceled', ['unavailable', 'ended']],
    ['57P01', 'an administrator ended the connection', ['unavailable', 'retryable']],
    ['57P03', 'the server is starting', ['unavailable']],
    ['58030', 'its disk fails', ['unavailable']],
    ['P0001', 'a trigger raised it', []],
    ['XX001', 'its files are damaged', []],
  ])('%s, because %s, is %j, from pg and from TypeORM', (code, _reason, kinds) => {
    expect(kindsOf(databaseError(code))).toEqual(kinds);
    expect(kindsOf(inTypeOrm(databaseError(code)))).toEqual(kinds);
  });

  it('counts and not the message, which a trigger may choose', () => {
    expect(kindsOf(databaseError('P0001', 'Connection terminated unexpectedly'))).toEqual([]);
  });
});

describe('an error that does not come from the server', () => {
  it.each([
    ['a call of the system', systemError('ECONNREFUSED', 'connect')],
    ['pg', new Error('Connection terminated unexpectedly')],
    ['TypeORM', inTypeOrm(new Error('Query runner already released.'))],
    // The connection of Citus to a worker has this code, but this error is not the server's.
    ['a library', Object.assign(new Error('no'), { code: '08006' })],
  ])('of %s means that the connection is lost', (_source, error) => {
    expect(kindsOf(error)).toEqual(['unavailable', 'retryable']);
  });

  it.each([
    Object.assign(new Error('unable to verify'), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' }),
    Object.assign(new Error('self-signed'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }),
    new Error('sslnegotiation=direct requires SSL to be enabled'),
  ])('but of TLS, no retry helps: %p', (error) => {
    expect(kindsOf(error)).toContain('misconfigured');
  });

  it.each([
    undefined,
    null,
    7,
    new TypeError('x is undefined'),
    new StartError('a mistake of the operator'),
    new ServiceError(databaseUnavailable, 'reported already'),
  ])('but from this program is none of the database: %p', (error) => {
    expect(kindsOf(error)).toEqual([]);
  });

  it('a pool or a client of pg that was closed is unavailable', async () => {
    const pool = new Pool();
    await pool.end();
    expect(kindsOf(await pool.connect().catch((error: unknown) => error))).toEqual([
      'unavailable',
      'retryable',
    ]);
    const client = new Client({ host: '127.0.0.1', port: CLOSED_PORT });
    await client.connect().catch(() => undefined);
    await client.end();
    expect(kindsOf(await client.query('SELECT 1').catch((error: unknown) => error))).toEqual([
      'unavailable',
      'retryable',
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
    expect(kindsOf(error)).toEqual(['unavailable', 'retryable']);
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
