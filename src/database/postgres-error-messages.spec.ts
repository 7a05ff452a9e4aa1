import { describe, expect, it } from '@jest/globals';
import { QueryFailedError } from 'typeorm/error/QueryFailedError.js';
import {
  databaseError,
  inTypeOrm,
  systemError,
} from '../../test/setup/database/database-errors.js';
import {
  describeDatabaseError,
  isMisconfigured,
  isUnavailable,
  noPrimary,
} from './postgres-errors.js';

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
  ])('says %s', (_what, error, text) => {
    expect(describeDatabaseError(error)).toBe(text);
  });

  it('never says the statement or its values, which the log must not have', () => {
    const error = new QueryFailedError('SELECT $1', ['secret'], databaseError('23505', 'is there'));
    expect(describeDatabaseError(error)).toBe('is there (23505)');
  });
});

describe('noPrimary', () => {
  const wrongPassword = databaseError('28P01', 'wrong password');
  const refused = systemError('ECONNREFUSED');
  const noSsl = new Error('The server does not support SSL connections');

  it.each<[string, unknown[], { isUnavailable: boolean; isMisconfigured: boolean }, string]>([
    [
      'all are read-only',
      [undefined],
      { isUnavailable: true, isMisconfigured: false },
      'no server takes writes (s0: read-only)',
    ],
    [
      'one refuses the password, and another may be the one that accepts it',
      [wrongPassword, refused],
      { isUnavailable: true, isMisconfigured: false },
      'no server takes writes (s0: wrong password (28P01); s1: connect ECONNREFUSED)',
    ],
    [
      'one cannot be used, and the other is read-only',
      [noSsl, undefined],
      { isUnavailable: true, isMisconfigured: false },
      'no server takes writes (s0: The server does not support SSL connections; s1: read-only)',
    ],
    [
      'none accepts the login',
      [noSsl, wrongPassword],
      { isUnavailable: true, isMisconfigured: true },
      'no server can be used (s0: The server does not support SSL connections; s1: wrong password (28P01))',
    ],
    [
      'none has TLS',
      [noSsl],
      { isUnavailable: false, isMisconfigured: false },
      'no server can be used (s0: The server does not support SSL connections)',
    ],
  ])('%s', (_why, errors, verdicts, message) => {
    const error = noPrimary(errors.map((error, i) => [`s${i}`, error] as const));
    expect(error.message).toBe(message);
    expect({
      isUnavailable: isUnavailable(error),
      isMisconfigured: isMisconfigured(error),
    }).toEqual(verdicts);
  });
});
