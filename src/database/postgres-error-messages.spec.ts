import { describe, expect, it } from '@jest/globals';
import { QueryFailedError } from 'typeorm/error/QueryFailedError.js';
import {
  databaseError,
  inTypeOrm,
  systemError,
} from '../../test/setup/database/database-errors.js';
import { describeDatabaseError } from './postgres-errors.js';

describe('describeDatabaseError', () => {
  it.each<[string, unknown, string]>([
    [
      'a message and its code',
      databaseError('28P01', 'password is wrong'),
      'password is wrong (28P01)',
    ],
    ['no code twice', systemError('ECONNREFUSED'), 'connect ECONNREFUSED'],
    ['no code where there is none', new Error('timeout expired'), 'timeout expired'],
    ['something for an empty message', new Error(''), 'unknown failure'],
    ['what is thrown and is no error', 'text', 'text'],
    [
      'the first of several addresses',
      Object.assign(new AggregateError([systemError('ECONNREFUSED'), systemError('ETIMEDOUT')]), {
        code: 'ECONNREFUSED',
      }),
      'connect ECONNREFUSED',
    ],
    ['a failed statement', inTypeOrm(databaseError('42501', 'denied')), 'denied (42501)'],
    [
      'how to leave a standby',
      databaseError('25006', 'read-only'),
      'read-only (25006); it is read-only, as a standby or a former primary is, so DATABASE_URL must lead to the primary',
    ],
    [
      'the backup for damaged files',
      databaseError('XX001', 'bad page'),
      'bad page (XX001); its files are damaged, restore a backup',
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
