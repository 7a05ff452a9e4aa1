import { expect, it } from '@jest/globals';
import { documentedPatroniSettings, haproxyConfig, pgbouncerSettings } from './settings.js';

it('the documented HAProxy is used, with the addresses of the cluster', () => {
  const config = haproxyConfig(5000, [{ name: 'a', port: 5001, restPort: 8001 }]);
  expect(config).toMatch(/^listen postgres\n {4}bind 127\.0\.0\.1:5000\n/);
  expect(config).toContain('on-marked-down shutdown-sessions');
  expect(config.match(/^ *server .*$/gm)).toEqual(['    server a 127.0.0.1:5001 check port 8001']);
});

it('the documented settings of Patroni lose no acknowledged plant', () => {
  expect(documentedPatroniSettings()).toMatchObject({
    synchronous_mode: true,
    synchronous_mode_strict: true,
  });
});

it('a setting of PgBouncer replaces the documented one', () => {
  expect(pgbouncerSettings({})).toEqual({ server_login_retry: '1' });
  expect(pgbouncerSettings({ server_login_retry: '15' })).toEqual({ server_login_retry: '15' });
});
