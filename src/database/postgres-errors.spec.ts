import { once } from 'node:events';
import { connect, type LookupFunction } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { Client, Pool } from 'pg';
import { QueryFailedError } from 'typeorm/error/QueryFailedError.js';
import {
  databaseError,
  inTypeOrm,
  systemError,
} from '../../test/setup/database/database-errors.js';
import { databaseUnavailable } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { StartError } from '../errors/start-error.js';
import {
  describeDatabaseError,
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
  database: isDatabaseError,
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
    ['42P01', 'there is no such table', ['tableMissing']],
    ['42P05', 'the statement is there', ['statementLost']],
    ['53100', 'the disk is full', ['unavailable']],
    ['55P03', 'a row is locked', ['unavailable', 'ofStatement', 'ended']],
    ['55006', 'the object is in use', []],
    ['57014', 'the statement was canceled', ['unavailable', 'ended']],
    ['57P01', 'an administrator ended the connection', ['unavailable', 'retryable']],
    ['57P03', 'the server is starting', ['unavailable']],
    ['58030', 'its disk fails', ['unavailable']],
    ['XX001', 'its files are damaged', []],
  ])('%s, because %s, is %j, from pg and from TypeORM', (code, _reason, kinds) => {
    expect(kindsOf(databaseError(code))).toEqual(['database', ...kinds]);
    expect(kindsOf(inTypeOrm(databaseError(code)))).toEqual(['database', ...kinds]);
  });

  it('counts and not the message, which a trigger may choose', () => {
    const error = databaseError('P0001', 'Connection terminated unexpectedly');
    expect(kindsOf(error)).toEqual(['database']);
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
    const client = new Client({ host: '127.0.0.1', port: CLOSED_PORT });
    await client.connect().catch(() => undefined);
    await client.end();
    for (const use of [() => pool.connect(), () => client.query('SELECT 1')]) {
      const error = await use().catch((error: unknown) => error);
      expect(kindsOf(error)).toEqual(['unavailable', 'retryable']);
    }
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

describe('describeDatabaseError', () => {
  it.each<[string, unknown, string]>([
    [
      'a message and its code',
      databaseError('28P01', 'password is wrong'),
      'password is wrong (28P01)',
    ],
    ['no code twice', systemError('ECONNREFUSED'), 'connect ECONNREFUSED'],
    [
      'the first of several addresses',
      new AggregateError([systemError('ECONNREFUSED'), systemError('ETIMEDOUT')]),
      'connect ECONNREFUSED',
    ],
    ['something for an empty message', new Error(''), 'unknown failure'],
    ['what is thrown and is no error', 'text', 'text'],
    [
      'how to leave a standby',
      databaseError('25006', 'read-only'),
      'read-only (25006); it is read-only, as a standby or a former primary is, so DATABASE_URL must lead to the primary',
    ],
    [
      'the backup for a damaged index',
      databaseError('XX002', 'bad index'),
      'bad index (XX002); its files are damaged, restore a backup',
    ],
    [
      'that a password is missing',
      new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
      'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string; the server wants a password: add it to DATABASE_URL, or set PGPASSWORD',
    ],
    [
      'that TLS is missing',
      databaseError('28000', 'no pg_hba.conf entry for host "h", user "u", no encryption'),
      'no pg_hba.conf entry for host "h", user "u", no encryption (28000); the server wants TLS: add sslmode=require to DATABASE_URL',
    ],
    [
      'how to trust an authority',
      Object.assign(new Error('self-signed certificate in certificate chain'), {
        code: 'SELF_SIGNED_CERT_IN_CHAIN',
      }),
      'self-signed certificate in certificate chain (SELF_SIGNED_CERT_IN_CHAIN); for a server whose certificate comes from an authority of your own, add sslrootcert=FILE with the certificate of that authority to DATABASE_URL',
    ],
  ])('says %s', (_what, error, text) => {
    expect(describeDatabaseError(error)).toBe(text);
  });

  it('never says the statement or its values, which the log must not have', () => {
    const error = new QueryFailedError('SELECT $1', ['secret'], databaseError('23505', 'is there'));
    expect(describeDatabaseError(error)).toBe('is there (23505)');
  });
});
