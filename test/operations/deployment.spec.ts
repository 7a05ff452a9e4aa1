// What the files for deployment and the settings of the service must agree on, and what no test that runs these files would notice:
// a timeout that is shorter than another one, a name that selects nothing. test/containers runs the image, Compose and the pods;
// promtool and systemd-analyze check their files in .ci/run.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { readConfig } from '../../src/config/config.js';
import { SECRET_SETTINGS, settings } from '../../src/config/settings.js';
import { environmentOf, valuesOf } from '../setup/service/systemd-unit.js';

const textOf = (file: string) => readFileSync(file, 'utf8');
const read = (file: string): unknown => parse(textOf(file), { merge: true });

const { http, database } = readConfig({ DATABASE_URL: 'postgres://127.0.0.1/plants' });

/** A stop takes this long after its two settings: the last second each for the database and the traces, see docs/limits.md. */
const CLOSING_MS = 2000;

/** A JWT, for which the keys of the issuer are requested twice, and three steps in the database: see docs/limits.md. */
const LONGEST_REQUEST_MS = 6000 + 3 * database.timeout;

/** More than 3,900 connections took, see docs/limits.md. */
const FLOOD_BYTES = 500e6;

const timeToStop = ({ shutdownDelay, shutdownTimeout } = http) =>
  shutdownDelay + shutdownTimeout + CLOSING_MS;

/** @param text such as `20s` */
const millisecondsOf = (text: string) => Number(/^(\d+)s$/.exec(text)![1]) * 1000;

function expectSettings(names: readonly string[]): void {
  const files = SECRET_SETTINGS.map((name) => `${name}_FILE`);
  const known = [...Object.keys(settings.shape), ...files];
  expect(names).not.toEqual([]);
  expect(names.filter((name) => !known.includes(name))).toEqual([]);
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly periodSeconds: number;
  readonly timeoutSeconds: number;
  readonly failureThreshold?: number;
}

interface Container {
  readonly image: string;
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly resources: { readonly limits: { readonly memory: string } };
}

type Labels = Readonly<Record<string, string>>;

interface Deployment {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Labels };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly [Container];
      };
    };
  };
}

describe('the Kubernetes files', () => {
  const DIR = 'deploy/kubernetes';
  const kustomization = read(`${DIR}/kustomization.yaml`) as {
    resources: string[];
    images: { name: string }[];
    labels: [{ pairs: Labels; includeTemplates: boolean }];
  };
  const deployment = read(`${DIR}/deployment.yaml`) as Deployment;
  const { metadata, spec: pod } = deployment.spec.template;
  const [container] = pod.containers;
  const { startupProbe, livenessProbe, readinessProbe } = container;
  const config = readConfig({
    DATABASE_URL: database.url,
    ...Object.fromEntries(container.env.map(({ name, value }) => [name, value])),
  });

  /** Three failures are the default of Kubernetes. */
  const millisecondsUntilFailure = ({ periodSeconds, failureThreshold = 3 }: Probe) =>
    periodSeconds * failureThreshold * 1000;

  it('set only variables that the service reads', () => {
    expectSettings(container.env.map(({ name }) => name));
  });

  it('are all applied, with the image that the operator names in one place', () => {
    const files = readdirSync(DIR).filter((name) => name !== 'kustomization.yaml');
    expect(kustomization.resources.toSorted()).toEqual(files.toSorted());
    expect(kustomization.images.map(({ name }) => name)).toEqual([container.image]);
  });

  it.each(['deployment', 'service', 'disruption-budget', 'network-policy'])(
    '%s.yaml selects the pods of the service',
    (name) => {
      const { spec } = read(`${DIR}/${name}.yaml`) as {
        spec: { selector?: object; podSelector?: object };
      };
      const selector = spec.podSelector ?? spec.selector!;
      const labels = 'matchLabels' in selector ? (selector.matchLabels as Labels) : selector;
      const [{ pairs, includeTemplates }] = kustomization.labels;
      expect(labels).not.toEqual({});
      expect({ ...metadata.labels, ...(includeTemplates && pairs) }).toMatchObject(labels);
    },
  );

  it('name the port on which the service listens, in probes, the service and the network policy', () => {
    expect(container.ports).toEqual([{ name: 'http', containerPort: http.port }]);
    for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe])
      expect(httpGet.port).toBe('http');
    expect(read(`${DIR}/service.yaml`)).toMatchObject({
      spec: { ports: [{ targetPort: 'http' }] },
    });
    expect(read(`${DIR}/network-policy.yaml`)).toMatchObject({
      spec: { ingress: [{ ports: [{ port: 'http' }] }] },
    });
  });

  it('restart no pod in an outage of the database, and send no requests to one that is not ready', () => {
    const paths = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet.path);
    expect(paths).toEqual(['/health/live', '/health/live', '/health/ready']);
    // A pod that starts waits for the database, and its log says why it ends.
    expect(config.database.startTimeout).toBeGreaterThan(database.startTimeout);
    expect(config.database.startTimeout).toBeLessThan(millisecondsUntilFailure(startupProbe));
    // While the database does not respond, a response takes this long.
    expect(database.timeout).toBeLessThan(readinessProbe.timeoutSeconds * 1000);
    expect(config.http.readinessTolerance).toBeGreaterThan(0);
  });

  it('let a pod that stops take requests until its readiness probe has failed, and kill it only after all its timeouts', () => {
    expect(config.http.shutdownDelay).toBeGreaterThan(millisecondsUntilFailure(readinessProbe));
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(timeToStop(config.http));
  });

  it('leave the number of pods to the autoscaler', () => {
    expect(deployment.spec).not.toHaveProperty('replicas');
    expect(read(`${DIR}/autoscaler.yaml`)).toMatchObject({
      spec: { scaleTargetRef: { kind: 'Deployment', name: deployment.metadata.name } },
    });
  });

  it('let a pod have the memory that a flood of connections takes', () => {
    const [, mebibytes] = /^(\d+)Mi$/.exec(container.resources.limits.memory)!;
    expect(Number(mebibytes) * 2 ** 20).toBeGreaterThan(FLOOD_BYTES);
  });

  it('describe pods that their namespace accepts, which enforces the restricted standard', () => {
    const label = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    expect(read(`${DIR}/namespace.yaml`)).toMatchObject({ metadata: { labels: label } });
    expect(pod).toMatchObject({
      // The image names its user without a number, so that a cluster cannot see that it is not root.
      securityContext: {
        runAsNonRoot: true,
        runAsUser: expect.any(Number),
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } },
      ],
    });
  });
});

interface ComposeService {
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: unknown;
  readonly restart: string;
  readonly stop_grace_period: string;
  readonly deploy: { readonly replicas: number };
  readonly ports?: readonly string[];
  readonly volumes: readonly string[];
}

describe('the Compose file', () => {
  const { services } = read('docker-compose.yml') as { services: Record<string, ComposeService> };
  const [one, replica, proxy] = ['plant-store', 'plant-store-replica', 'proxy'].map(
    (name) => services[name]!,
  ) as [ComposeService, ComposeService, ComposeService];

  const mountOf = (service: string, source: string) =>
    services[service]!.volumes.map((it) => it.split(':')).find(([from]) => from === source)?.[1];

  it('sets only variables that the service reads, and passes on those that an operator changes', () => {
    expectSettings(Object.keys(replica.environment!));
    for (const name of [
      ...['LOG_LEVEL', 'BASE_URL', 'CORS_ORIGINS', 'OIDC_ISSUER', 'OIDC_AUDIENCE'],
      'METRICS_TOKEN_SHA256',
    ])
      expect(one.environment![name]).toMatch(new RegExp(`^\\$\\{${name}:-.*\\}$`));
  });

  it('gives replicas the settings of the single instance, and the proxy the same BODY_LIMIT', () => {
    expect(replica.environment).toEqual({ ...one.environment, TRUSTED_PROXY_HOPS: '1' });
    expect(proxy.environment).toEqual({ BODY_LIMIT: one.environment!['BODY_LIMIT'] });
    const [, limit] = /^\$\{BODY_LIMIT:-(\w+)\}$/.exec(proxy.environment!['BODY_LIMIT']!)!;
    expect(settings.shape.BODY_LIMIT.parse(limit)).toBe(http.bodyLimit);
  });

  it('opens ports for this machine alone, and none of the replicas, which trust the proxy', () => {
    const ports = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(ports).toEqual(ports.map(() => expect.stringMatching(/^127\.0\.0\.1:\d+:\d+$/)));
    expect(one.ports).toEqual([`127.0.0.1:3000:${http.port}`]);
    expect(replica).not.toHaveProperty('ports');
  });

  it('restarts every service except the migration', () => {
    for (const [name, { restart }] of Object.entries(services))
      expect([name, restart]).toEqual([name, name === 'migration' ? 'no' : 'unless-stopped']);
  });

  it('gives an instance the time that it needs to stop', () => {
    for (const { stop_grace_period: period } of [one, replica])
      expect(millisecondsOf(period)).toBeGreaterThan(timeToStop());
  });

  it('keeps the plants when its containers are removed', () => {
    expect(mountOf('postgres', 'postgres-data')).toBe('/var/lib/postgresql');
  });

  it('lets Prometheus read all instances, twice at least in the shortest window of an alert', () => {
    const { global, scrape_configs } = read('deploy/prometheus/prometheus.yml') as {
      global: { scrape_interval: string };
      scrape_configs: { dns_sd_configs: object[] }[];
    };
    expect(scrape_configs[0]!.dns_sd_configs).toMatchObject([
      { names: ['plant-store', 'plant-store-replica'], port: http.port },
    ]);
    // rate() needs two values.
    const windows = textOf('deploy/prometheus/alerts.yml').matchAll(/\[(\d+)m\]/g);
    const shortest = Math.min(...Array.from(windows, ([, minutes]) => Number(minutes) * 60_000));
    expect(millisecondsOf(global.scrape_interval)).toBeLessThanOrEqual(shortest / 2);
  });

  it('lets Grafana find Prometheus and the dashboard', () => {
    const provisioning = 'deploy/grafana/provisioning';
    expect(mountOf('grafana', `./${provisioning}`)).toBe('/etc/grafana/provisioning');
    expect(read(`${provisioning}/datasources/prometheus.yml`)).toMatchObject({
      datasources: [{ url: 'http://prometheus:9090' }],
    });
    expect(read(`${provisioning}/dashboards/plant-store.yml`)).toMatchObject({
      providers: [{ options: { path: mountOf('grafana', './deploy/grafana/dashboards') } }],
    });
  });

  it('the proxy has time to try each replica', () => {
    const text = textOf('deploy/proxy/nginx.conf');
    const [, tries] = /proxy_next_upstream_tries (\d+);/.exec(text)!;
    expect(Number(tries)).toBe(replica.deploy.replicas);
    expect(Number(tries) * nginxTimeout(text, 'proxy_connect_timeout')).toBeLessThan(
      nginxTimeout(text, 'proxy_next_upstream_timeout'),
    );
  });
});

/** The first value of a directive of nginx, in milliseconds. */
const nginxTimeout = (text: string, directive: string) =>
  millisecondsOf(new RegExp(`\\b${directive} (\\w+);`).exec(text)![1]!);

// Read and not run: a database would have to hang for longer than that.
it.each(['deploy/proxy/nginx.conf', 'deploy/nginx/plant-store.conf'])(
  '%s takes the bodies that the service takes, and waits longer than a request may take',
  (file) => {
    const text = textOf(file);
    const [, limit] = /client_max_body_size (\w+);/.exec(text)!;
    expect(settings.shape.BODY_LIMIT.parse(`${limit}b`)).toBe(http.bodyLimit);
    expect(nginxTimeout(text, 'proxy_read_timeout')).toBeGreaterThan(LONGEST_REQUEST_MS);
  },
);

it('the site for nginx gives a client the time that the service gives it, and closes connections before the service does', () => {
  const site = textOf('deploy/nginx/plant-store.conf');
  for (const directive of ['client_header_timeout', 'client_body_timeout'])
    expect(nginxTimeout(site, directive)).toBe(http.requestTimeout);
  expect(nginxTimeout(site, 'keepalive_timeout')).toBeLessThan(http.keepAliveTimeout);
});

describe('the unit of systemd', () => {
  const environment = environmentOf({ '%i': '3001' });
  const numberOf = (directive: string) => Number(valuesOf(directive)[0]);

  it('sets only variables that the service reads', () => {
    expectSettings(Object.keys(environment));
  });

  it('is an instance for each port', () => {
    expect(environment['PORT']).toBe('3001');
  });

  it('is reached through the proxy alone, which it trusts', () => {
    expect(environment).toMatchObject({ HOST: '127.0.0.1', TRUSTED_PROXY_HOPS: '1' });
  });

  it('names the files of the database and of the data as systemd provides them', () => {
    const [name] = valuesOf('LoadCredential')[0]!.split(':');
    expect(environment['DATABASE_URL_FILE']).toBe(`%d/${name}`);
    expect(environment['DATA_DIR']).toBe(`%S/${valuesOf('StateDirectory')[0]}`);
  });

  it('gives the service the time that it needs to stop', () => {
    expect(numberOf('TimeoutStopSec') * 1000).toBeGreaterThan(timeToStop());
  });

  it('gives up when starts end at once, as with a wrong setting, and never in an outage of the database', () => {
    const secondsOfAll = (start: number) =>
      (start + numberOf('RestartSec')) * numberOf('StartLimitBurst');
    /** Of a start that ends at once, on a slow machine. */
    const slow = 3;
    const interval = numberOf('StartLimitIntervalSec');
    expect(secondsOfAll(slow)).toBeLessThan(interval);
    expect(secondsOfAll(database.startTimeout / 1000)).toBeGreaterThan(2 * interval);
  });

  it('allows the file descriptors of all connections', () => {
    // And some for files, and for the connections to the database, the issuer and the collector.
    expect(numberOf('LimitNOFILE')).toBeGreaterThanOrEqual(http.maxConnections + 100);
  });
});

it.each([
  // Versions are not in the order of letters.
  ['1.10.0', ['v1.9.0', 'v1.10.0', 'v2.0.0'], '1.10.0 1'],
  ['1.9.1', ['v1.9.1', 'v1.10.0'], '1.9.1'],
  ['2.0.0', ['v1.9.0', 'v2.0.0', 'v2.1.0-rc.1', 'v10.0.0'], '2.0.0 2'],
])('the image of release %s, with the Git tags %j, gets the tags %s', (version, gitTags, tags) => {
  const options = { input: gitTags.join('\n'), encoding: 'utf8' } as const;
  expect(execFileSync('.ci/image-tags', [version], options)).toBe(`${tags}\n`);
});
