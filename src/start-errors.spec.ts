import { expect, it } from '@jest/globals';
import { databaseError, inTypeOrm } from '../test/setup/database/database-errors.js';
import { databaseUnavailable } from './errors/errors.js';
import { explainStartError } from './start-errors.js';

it.each([
  [
    'is taken',
    { syscall: 'listen', code: 'EADDRINUSE', address: '::1', port: 8080 },
    'The address ::1:8080 is taken by another program. Set PORT to a free one.',
  ],
  [
    'needs a privilege',
    { syscall: 'listen', code: 'EACCES', address: '127.0.0.1', port: 80 },
    'The address 127.0.0.1:80 may not be opened by this user. Set PORT to one from 1024 up.',
  ],
  [
    'is on another machine',
    { syscall: 'listen', code: 'EADDRNOTAVAIL', address: '192.0.2.250', port: 80 },
    'The address 192.0.2.250:80 is not on this machine. Set HOST to an address of this machine.',
  ],
  [
    'has an unknown name',
    { syscall: 'getaddrinfo', code: 'ENOTFOUND', hostname: 'no.invalid' },
    'The address no.invalid is not on this machine. Set HOST to an address of this machine.',
  ],
  [
    'fails in another way',
    { syscall: 'getaddrinfo', code: 'EAI_AGAIN', hostname: 'no.invalid' },
    'The address no.invalid cannot be opened (EAI_AGAIN). Set HOST to an address of this machine, such as 127.0.0.1.',
  ],
])('the message about an address that %s names the remedy', (_problem, fields, message) => {
  expect(explainStartError(Object.assign(new Error('failed'), fields))).toBe(message);
});

it.each([
  ['pg', (error: Error) => error],
  ['TypeORM', inTypeOrm],
])('an error of a statement that %s ran is one line, without a stack', (_library, wrap) => {
  const error = wrap(databaseError('42501', 'permission denied for table plants'));
  expect(explainStartError(error)).toBe(
    'The database refused: permission denied for table plants (42501).',
  );
});

it('an outage is one line, without a stack', () => {
  const cause = databaseError('57014', 'canceling statement due to statement timeout');
  expect(explainStartError(databaseUnavailable(cause))).toBe(
    'The database cannot be used: canceling statement due to statement timeout (57014).',
  );
  const silence = 'The database cannot be used: it does not respond to a statement.';
  expect(explainStartError(databaseUnavailable(new Error('Query read timeout')))).toBe(silence);
  expect(explainStartError(databaseUnavailable(inTypeOrm(new Error('Query read timeout'))))).toBe(
    silence,
  );
  expect(explainStartError(databaseUnavailable(new Error('it did not respond in time')))).toBe(
    'The database cannot be used: it did not respond in time.',
  );
});

it('an error of a bug has its stack, and what is thrown instead of an error is shown', () => {
  expect(explainStartError(new Error('bug'))).toMatch(/^Error: bug\n +at /);
  expect(explainStartError({ bug: 1 })).toBe('{ bug: 1 }');
});
