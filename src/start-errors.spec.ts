import { expect, it } from '@jest/globals';
import { databaseError, inTypeOrm } from '../test/setup/database/database-errors.js';
import { databaseUnavailable } from './errors/errors.js';
import { explainStartError } from './start-errors.js';

it.each([
  [
    { syscall: 'listen', code: 'EADDRINUSE', address: '::1', port: 8080 },
    'The address ::1:8080 is taken by another program. Set PORT to a free one.',
  ],
  [
    { syscall: 'listen', code: 'EACCES', address: '127.0.0.1', port: 80 },
    'The address 127.0.0.1:80 may not be opened by this user. Set PORT to one from 1024 up.',
  ],
  [
    { syscall: 'listen', code: 'EADDRNOTAVAIL', address: '192.0.2.250' },
    'The address 192.0.2.250 is not on this machine. Set HOST to an address of this machine.',
  ],
  [
    { syscall: 'getaddrinfo', code: 'ENOTFOUND', hostname: 'no.invalid' },
    'The address no.invalid is not on this machine. Set HOST to an address of this machine.',
  ],
  [
    { syscall: 'getaddrinfo', code: 'EAI_AGAIN', hostname: 'no.invalid' },
    'The address no.invalid cannot be opened (EAI_AGAIN). Set HOST to an address of this machine, such as 127.0.0.1.',
  ],
])('%j of an address is explained with the remedy', (fields, message) => {
  expect(explainStartError(Object.assign(new Error('failed'), fields))).toBe(message);
});

it('an error of a statement is one line, without a stack', () => {
  const error = inTypeOrm(databaseError('42501', 'permission denied for table plants'));
  expect(explainStartError(error)).toBe(
    'The database refused: permission denied for table plants (42501).',
  );
});

it.each([
  [databaseError('57014', 'canceling statement'), 'canceling statement (57014)'],
  [inTypeOrm(new Error('Query read timeout')), 'it does not respond to a statement'],
])('an outage is one line, without a stack: %p', (cause, reason) => {
  expect(explainStartError(databaseUnavailable(cause))).toBe(
    `The database cannot be used: ${reason}.`,
  );
});

it('an error of a bug has its stack, and what is thrown instead of an error is shown', () => {
  expect(explainStartError(new Error('bug'))).toMatch(/^Error: bug\n +at /);
  expect(explainStartError({ bug: 1 })).toBe('{ bug: 1 }');
});
