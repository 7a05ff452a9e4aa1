import { describe, expect, it } from '@jest/globals';
import { readConfig } from '../../src/config/config.js';
import { settings } from '../../src/config/settings.js';
import { environmentOf, valuesOf } from '../setup/service/systemd-unit.js';
import { CLOSING_MS } from './closing-time.js';

const environment = environmentOf({ '%i': '3001' });
const config = readConfig({ DATABASE_URL: 'postgres://127.0.0.1/plants' });

// That the unit itself is valid and closed enough is checked by systemd-analyze: see check_systemd in .ci/steps.sh.
// test/start/replicas.server.ts starts two instances.
describe('the unit of systemd', () => {
  it('sets only variables that the service reads, and a port and a host that it accepts', () => {
    const { DATABASE_URL_FILE: _, NODE_ENV: production, ...rest } = environment;
    expect(production).toBe('production');
    expect(Object.keys(settings.shape)).toEqual(expect.arrayContaining(Object.keys(rest)));
    expect(() => readConfig(rest)).not.toThrow();
  });

  it('is reached through the proxy on the same host alone, which it trusts', () => {
    expect(environment).toMatchObject({ HOST: '127.0.0.1', TRUSTED_PROXY_HOPS: '1' });
  });

  it('starts without the file of more settings, too', () => {
    expect(valuesOf('EnvironmentFile')).toEqual(['-/etc/plant-store/environment']);
  });

  it('gives the address of the database to the service in the file that only root can read', () => {
    const [name, source] = valuesOf('LoadCredential')[0]!.split(':');
    expect(source).toBe('/etc/plant-store/database-url');
    expect(environment['DATABASE_URL_FILE']).toBe(`%d/${name}`);
  });

  it('gives the service the time that it needs to stop, and lets it end its own processes', () => {
    const { shutdownDelay, shutdownTimeout } = config.http;
    const [seconds] = valuesOf('TimeoutStopSec');
    expect(Number(seconds) * 1000).toBeGreaterThan(shutdownDelay + shutdownTimeout + CLOSING_MS);
    expect(valuesOf('KillMode')).toEqual(['mixed']);
  });

  it('starts the service again when it ends, and not in a hurry', () => {
    expect(valuesOf('Restart')).toEqual(['always']);
    expect(Number(valuesOf('RestartSec')[0])).toBeGreaterThan(0);
  });

  it('gives up when starts end at once, as with a wrong setting, and never in an outage of the database', () => {
    const number = (directive: string) => Number(valuesOf(directive)[0]);
    const secondsOfAll = (start: number) =>
      (start + number('RestartSec')) * number('StartLimitBurst');
    /** Of a start that ends at once, on a slow machine. */
    const slow = 3;
    expect(secondsOfAll(slow)).toBeLessThan(number('StartLimitIntervalSec'));
    expect(secondsOfAll(config.database.startTimeout / 1000)).toBeGreaterThan(
      2 * number('StartLimitIntervalSec'),
    );
  });

  it('allows the file descriptors of all connections', () => {
    // And some for files, and for the connections to the database, the issuer and the collector.
    const needed = config.http.maxConnections + 100;
    expect(Number(valuesOf('LimitNOFILE')[0])).toBeGreaterThanOrEqual(needed);
  });

  it('is an instance for each port', () => {
    expect(environment).toMatchObject({ PORT: '3001' });
  });

  it('hides what the service writes from other users, and from no other instance', () => {
    expect(valuesOf('UMask')).toEqual(['0077']);
    expect(valuesOf('StateDirectoryMode')).toEqual(['0700']);
    expect(valuesOf('DynamicUser')).toEqual(['yes']);
    expect(valuesOf('User')).toEqual(['plant-store']);
    expect(environment['DATA_DIR']).toBe(`%S/${valuesOf('StateDirectory')[0]}`);
  });
});
