import { expect, it } from '@jest/globals';
import { misspelledSettings, warningsAbout } from './misspelled-settings.js';

const SETTINGS = ['HOST', 'PORT', 'DATABASE_URL', 'DATABASE_URL_FILE', 'BODY_LIMIT', 'LOG_LEVEL'];

it.each([
  ['DATABSE_URL', 'DATABASE_URL'],
  ['DATABASE_URL_FIEL', 'DATABASE_URL_FILE'],
  ['BODYLIMITS', 'BODY_LIMIT'],
  ['PORTS', 'PORT'],
])('%s is nearly %s', (name, setting) => {
  expect(misspelledSettings(['PORT', name], SETTINGS)).toEqual([
    `${name} is not a setting: did you mean ${setting}?`,
  ]);
});

it.each([['HOME', 'PATH', 'PROT', 'HOSTNAME', 'DATABASE', 'DATABASE_SIZE'], SETTINGS])(
  '%s and others are settings, or belong to another program',
  (...names) => {
    expect(misspelledSettings(names, SETTINGS)).toEqual([]);
  },
);

it('WEB_CONCURRENCY, which platforms set, is a warning', () => {
  expect(warningsAbout(['LOG_LEVELS', 'WEB_CONCURRENCY'], SETTINGS)).toEqual([
    'LOG_LEVELS is not a setting: did you mean LOG_LEVEL?',
    'WEB_CONCURRENCY has no effect: the service is one process. For more, run more instances of it, as docs/scaling.md says.',
  ]);
});
