import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { settings } from '../../src/config/settings.js';
import { ROOT } from '../setup/process/command.js';
import { CLOSING_MS } from './closing-time.js';

const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const read = (file: string): unknown => parse(textOf(file), { merge: true });

const defaultOf = (name: keyof typeof settings.shape & `${string}_MS`) =>
  settings.shape[name].parse(undefined);

/** @param text such as `20s` */
const millisecondsOf = (text: string) => Number(/^(\d+)s$/.exec(text)![1]) * 1000;

/** Six for a token that waits for others and then for its own statements: see docs/limits.md. */
const LONGEST_REQUEST_MS = 6 * defaultOf('DATABASE_TIMEOUT_MS');

const PROXY = 'deploy/proxy/nginx.conf';

/** The first value of a directive of nginx, in milliseconds. */
const nginxTimeout = (file: string, directive: string) =>
  millisecondsOf(new RegExp(`\\b${directive} (\\w+);`).exec(textOf(file))![1]!);

interface ComposeService {
  image: string;
  entrypoint?: string[];
  command?: string[];
  profiles?: string[];
  environment: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
  restart: string;
  stop_grace_period: string;
  deploy?: { replicas: number };
  ports?: string[];
  volumes: string[];
}

const compose = read('docker-compose.yml') as {
  services: Record<string, ComposeService>;
  volumes: Record<string, unknown>;
};
const { services } = compose;
const plantStores = Object.entries(services).filter(
  ([, { image, command }]) => image === 'plant-store' && command === undefined,
);

/** The service for whose end another one waits. */
const dependencyOf = ({ depends_on }: ComposeService) => services[Object.keys(depends_on!)[0]!]!;

const databaseUrlOf = ({ environment }: ComposeService) => environment['DATABASE_URL']!;

/** The user, the host and the database of an address. A password from a variable of Compose would not be escaped there. */
const URL_PARTS = /^postgres:\/\/(\w+)@([\w-]+):5432\/(\w+)$/;

/** The ports on which the containers of an image listen. */
const PORTS: Readonly<Record<string, string>> = {
  'plant-store': String(settings.shape.PORT.parse(undefined)),
  // The one of deploy/proxy/nginx.conf, and defaults.
  nginx: '8080',
  'prom/prometheus': '9090',
  'grafana/grafana': '3000',
};
const portOf = ({ image }: ComposeService) => PORTS[image.split(':')[0]!];

/** The folder of a container in which a service has a folder of this machine or a volume. */
const mountOf = (service: string, source: string) =>
  services[service]!.volumes.map((it) => it.split(':')).find(([from]) => from === source)?.[1];

// That the proxy spreads requests over its instances, and takes the bodies that they take, is shown by running it: see
// test/containers/compose.containers.ts and test/http/proxy.server.ts.
describe('the Compose file', () => {
  it('opens ports for this machine only', () => {
    const ports = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(ports).not.toEqual([]);
    expect(ports).toEqual(ports.map(() => expect.stringMatching(/^127\.0\.0\.1:\d+:\d+$/)));
  });

  it.each([
    ['plant-store', '3000', undefined],
    ['proxy', '8080', 'scale'],
    ['grafana', '3001', 'observability'],
    ['prometheus', '9090', 'observability'],
  ])('opens the port of %s at %s', (name, port, profile) => {
    const service = services[name]!;
    expect(service.profiles).toEqual(profile && [profile]);
    expect(service.ports).toEqual([`127.0.0.1:${port}:${portOf(service)}`]);
  });

  it('starts the proxy with its own script and configuration', () => {
    const { entrypoint } = services['proxy']!;
    expect(entrypoint).toEqual(['/bin/sh', `${mountOf('proxy', './deploy/proxy')}/start`]);
  });

  it('gives the proxy and all instances the same BODY_LIMIT, by default that of the service', () => {
    const limits = [services['proxy']!, ...plantStores.map(([, service]) => service)].map(
      ({ environment }) => environment['BODY_LIMIT']!,
    );
    const [, limit] = /^\$\{BODY_LIMIT:-(\w+)\}$/.exec(limits[0]!)!;
    expect(new Set(limits).size).toBe(1);
    const { BODY_LIMIT } = settings.shape;
    expect(BODY_LIMIT.parse(limit)).toBe(BODY_LIMIT.parse(undefined));
  });

  it('starts every service again when it ends, except those for whose end others wait', () => {
    const completed = Object.values(services).flatMap(({ depends_on }) =>
      Object.entries(depends_on ?? {})
        .filter(([, { condition }]) => condition === 'service_completed_successfully')
        .map(([name]) => name),
    );
    expect(Object.entries(services).map(([name, { restart }]) => [name, restart])).toEqual(
      Object.keys(services).map((name) => [
        name,
        completed.includes(name) ? 'no' : 'unless-stopped',
      ]),
    );
  });

  it('trusts a proxy in exactly the instances that only the proxy reaches', () => {
    const [behind] = Object.keys(services['proxy']!.depends_on!);
    expect(services[behind!]).not.toHaveProperty('ports');
    expect(
      plantStores.map(([name, { environment }]) => [name, environment['TRUSTED_PROXY_HOPS']]),
    ).toEqual(plantStores.map(([name]) => [name, name === behind ? '1' : undefined]));
  });

  it.each(plantStores)('starts %s when its migration has succeeded', (_, { depends_on }) => {
    const [[migration, { condition }]] = Object.entries(depends_on!) as [
      [string, { condition: string }],
    ];
    expect(services[migration]!.command!.slice(0, 2)).toEqual(['./plant-store', 'migrate']);
    expect(condition).toBe('service_completed_successfully');
  });

  it.each(plantStores)('leads %s to the database that its migration prepares', (_, service) => {
    expect(databaseUrlOf(service)).toBe(databaseUrlOf(dependencyOf(service)));
  });

  it.each(plantStores)('leads %s to a server that was made for its user', (_, service) => {
    const [, user, host, database] = URL_PARTS.exec(databaseUrlOf(service))!;
    const { environment } = services[host!]!;
    expect(environment['POSTGRES_USER']).toBe(user);
    expect(environment['POSTGRES_DB']).toBe(database);
    const asksForPassword = environment['POSTGRES_HOST_AUTH_METHOD'] !== 'trust';
    const password = service.environment['PGPASSWORD'];
    if (asksForPassword) expect(environment['POSTGRES_PASSWORD']).toBe(password);
    expect(dependencyOf(service).environment['PGPASSWORD']).toBe(password);
  });

  // BODY_LIMIT and METRICS_TOKEN_SHA256 have tests of their own.
  it.each(['LOG_LEVEL', 'BASE_URL', 'CORS_ORIGINS', 'OIDC_ISSUER', 'OIDC_AUDIENCE'])(
    'passes %s on to every Plant Store',
    (name) => {
      for (const [, { environment }] of plantStores) {
        expect(environment[name]).toMatch(new RegExp(`^\\$\\{${name}:-.*\\}$`));
      }
    },
  );

  it.each(plantStores)('gives %s no right that it does not need', (_, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
  });

  it.each(plantStores)('gives %s the time that it needs to stop', (_, service) => {
    const needed = defaultOf('SHUTDOWN_DELAY_MS') + defaultOf('SHUTDOWN_TIMEOUT_MS') + CLOSING_MS;
    expect(service.environment).not.toHaveProperty('SHUTDOWN_TIMEOUT_MS');
    expect(millisecondsOf(service.stop_grace_period)).toBeGreaterThan(needed);
  });

  it('keeps the plants in a volume, which remains without the container', () => {
    expect(mountOf('postgres', 'postgres-data')).toBe('/var/lib/postgresql');
    expect(compose.volumes).toHaveProperty('postgres-data');
  });

  it.each(['migration', 'proxy'])('starts %s when what it works with is ready', (name) => {
    const conditions = Object.values(services[name]!.depends_on!).map((it) => it.condition);
    expect(conditions).toEqual(['service_healthy']);
  });

  // Read and not run: a database would have to hang for longer than that.
  it('has a proxy that waits longer than a request may take', () => {
    expect(nginxTimeout(PROXY, 'proxy_read_timeout')).toBeGreaterThan(LONGEST_REQUEST_MS);
  });

  it('has a proxy that has the time to try each replica', () => {
    const { replicas } = services['plant-store-replica']!.deploy!;
    const tries = Number(/proxy_next_upstream_tries (\d+);/.exec(textOf(PROXY))![1]);
    expect(tries).toBe(replicas);
    expect(tries * nginxTimeout(PROXY, 'proxy_connect_timeout')).toBeLessThan(
      nginxTimeout(PROXY, 'proxy_next_upstream_timeout'),
    );
  });
});

describe('the site for nginx on the host of the service', () => {
  const SITE = 'deploy/nginx/plant-store.conf';

  it('waits longer than a request may take', () => {
    expect(nginxTimeout(SITE, 'proxy_read_timeout')).toBeGreaterThan(LONGEST_REQUEST_MS);
  });

  it('gives a client as much time as the service does', () => {
    for (const directive of ['client_header_timeout', 'client_body_timeout'])
      expect(nginxTimeout(SITE, directive)).toBe(defaultOf('REQUEST_TIMEOUT_MS'));
  });

  it('closes connections to the service before the service does', () => {
    expect(nginxTimeout(SITE, 'keepalive_timeout')).toBeLessThan(
      defaultOf('KEEP_ALIVE_TIMEOUT_MS'),
    );
  });

  it('listens at the addresses of IPv6, too', () => {
    expect(textOf(SITE).match(/listen .*;/g)).toEqual([
      'listen 80;',
      'listen [::]:80;',
      'listen 443 ssl;',
      'listen [::]:443 ssl;',
    ]);
  });
});

describe('the monitoring of the Compose file', () => {
  const prometheus = read('deploy/prometheus/prometheus.yml') as {
    global: { scrape_interval: string };
    rule_files: string[];
    scrape_configs: [
      {
        job_name: string;
        dns_sd_configs: [{ names: string[]; port: number }];
      },
    ];
  };
  const [job] = prometheus.scrape_configs;

  it('evaluates the alerts, which look at the job of Prometheus', () => {
    expect(prometheus.rule_files).toEqual(['alerts.yml']);
    expect(mountOf('prometheus', './deploy/prometheus')).toBe('/etc/prometheus');
    const jobs = textOf('deploy/prometheus/alerts.yml').matchAll(/\bjob="([^"]*)"/g);
    expect([...new Set([...jobs].map(([, name]) => name))]).toEqual([job.job_name]);
  });

  it('reads the metrics of all instances on Postgres, at the port on which they listen', () => {
    const [{ names, port }] = job.dns_sd_configs;
    expect(names).toEqual(plantStores.map(([name]) => name));
    expect(port).toBe(settings.shape.PORT.parse(undefined));
  });

  it('needs no secret of Compose, which would be a warning, or a folder, for those who do not make its file', () => {
    expect(compose).not.toHaveProperty('secrets');
  });

  it('passes the hash of the token for metrics on to all instances', () => {
    const hashes = plantStores.map(([name, { environment }]) => [
      name,
      environment['METRICS_TOKEN_SHA256'],
    ]);
    expect(hashes).toEqual(plantStores.map(([name]) => [name, '${METRICS_TOKEN_SHA256:-}']));
  });

  it('reads the metrics twice, at least, in the shortest window of an alert', () => {
    // rate() needs two values.
    const windows = textOf('deploy/prometheus/alerts.yml').matchAll(/\[(\d+)m\]/g);
    const shortest = Math.min(...[...windows].map(([, minutes]) => Number(minutes) * 60_000));
    expect(millisecondsOf(prometheus.global.scrape_interval)).toBeLessThanOrEqual(shortest / 2);
  });

  it('has Prometheus as the source of the dashboard', () => {
    const { datasources } = read('deploy/grafana/provisioning/datasources/prometheus.yml') as {
      datasources: [{ url: string }];
    };
    const { hostname, port } = new URL(datasources[0].url);
    expect(hostname).toBe('prometheus');
    expect(port).toBe(portOf(services[hostname]!));
  });

  it('has a user of Grafana whose password the operator sets, and that is `plants` otherwise', () => {
    const { environment } = services['grafana']!;
    expect(environment).not.toHaveProperty('GF_SECURITY_ADMIN_USER');
    expect(environment['GF_SECURITY_ADMIN_PASSWORD']).toBe('${GRAFANA_PASSWORD:-plants}');
  });

  it('shows the dashboard', () => {
    const provisioning = 'deploy/grafana/provisioning';
    const { providers } = read(`${provisioning}/dashboards/plant-store.yml`) as {
      providers: [{ options: { path: string } }];
    };
    expect(mountOf('grafana', './deploy/grafana/dashboards')).toBe(providers[0].options.path);
    expect(mountOf('grafana', `./${provisioning}`)).toBe('/etc/grafana/provisioning');
  });
});
