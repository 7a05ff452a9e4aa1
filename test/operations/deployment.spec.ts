import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { settings } from '../../src/config/config.js';
import { ROOT, runProgram, type Command } from '../setup/service/command.js';

const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const read = (file: string): unknown => parse(textOf(file), { merge: true });

const defaultOf = (name: 'DATABASE_TIMEOUT_MS' | 'SHUTDOWN_DELAY_MS' | 'SHUTDOWN_TIMEOUT_MS') =>
  settings.shape[name].parse(undefined);

/** The pages for operators. */
const PAGES = ['deployment', 'monitoring', 'limits', 'scaling', 'high-availability'];

/** Their text as one line. */
const operations = PAGES.map((page) => textOf(`docs/${page}.md`))
  .join('\n')
  .replaceAll(/\s+/g, ' ');

/** What the pages for operators contain in the groups of a pattern. */
function documented(pattern: RegExp): string[] {
  const match = pattern.exec(operations);
  if (match === null) throw new Error(`No page for operators contains ${String(pattern)}`);
  return match.slice(1);
}

const numberOf = (word: string) => ['no', 'one', 'two', 'three', 'four'].indexOf(word);

/** The last second each for the database and the traces: see docs/limits.md. */
const CLOSING_MS = 2000;

/** @param text such as `20s` */
const millisecondsOf = (text: string) => Number(/^(\d+)s$/.exec(text)![1]) * 1000;

const inPod = (container: object) => ({
  spec: { template: { spec: { containers: [container] } } },
});
const withSetting = (name: string, value: string) => ({
  env: expect.arrayContaining([{ name, value }]),
});

interface Workload {
  spec: {
    template: {
      spec: {
        terminationGracePeriodSeconds: number;
        securityContext: { runAsUser: number };
        containers: [
          {
            image: string;
            env: { name: string; value: string }[];
            readinessProbe: { periodSeconds: number; failureThreshold: number };
            resources: Record<'requests' | 'limits', { memory: string }>;
          },
        ];
      };
    };
  };
}

const podOf = (file: string) => (read(`deploy/kubernetes/${file}`) as Workload).spec.template.spec;

describe('the Kubernetes files, as docs/deployment.md promises', () => {
  const [least, most] = documented(/autoscaler from (\d+) to (\d+)/);
  const [minutes] = documented(/waits for it for (\d+) minutes \(`DATABASE_START_TIMEOUT_MS`/);
  const [tolerance] = documented(
    /`READINESS_TOLERANCE_MS`.{0,200} Kubernetes files have (\d+) s\./,
  );
  const [namespace, secret] = documented(/kubectl -n (\S+) create secret generic (\S+) /);
  const [deployment] = documented(/kubectl -n \S+ exec deploy\/(\S+) -- \.\/plant-store/);
  const [imageFile] = documented(/Set the image in `(\S+)`/);

  it.each([
    [
      'an outage of the database restarts no pod',
      'deployment.yaml',
      inPod({
        startupProbe: { httpGet: { path: '/health/live' } },
        livenessProbe: { httpGet: { path: '/health/live' } },
      }),
    ],
    [
      'a pod that cannot store plants gets no requests',
      'deployment.yaml',
      inPod({ readinessProbe: { httpGet: { path: '/health/ready' } } }),
    ],
    [
      'a rolling update never has fewer instances than before',
      'deployment.yaml',
      { spec: { strategy: { rollingUpdate: { maxUnavailable: 0 } } } },
    ],
    ['the command for tokens finds a pod', 'deployment.yaml', { metadata: { name: deployment } }],
    [
      `a pod that starts waits for the database for ${minutes} minutes`,
      'deployment.yaml',
      inPod(withSetting('DATABASE_START_TIMEOUT_MS', String(Number(minutes) * 60_000))),
    ],
    [
      `a failover of ${tolerance} seconds takes no requests away from a pod`,
      'deployment.yaml',
      inPod(withSetting('READINESS_TOLERANCE_MS', String(Number(tolerance) * 1000))),
    ],
    [
      'the pods are spread over zones and machines',
      'deployment.yaml',
      {
        spec: {
          template: {
            spec: {
              topologySpreadConstraints: [
                { topologyKey: 'topology.kubernetes.io/zone' },
                { topologyKey: 'kubernetes.io/hostname' },
              ],
            },
          },
        },
      },
    ],
    [
      'the address of a client is the one that the ingress names, and no earlier one',
      'deployment.yaml',
      inPod(withSetting('TRUSTED_PROXY_HOPS', '1')),
    ],
    [
      `from ${least} to ${most} instances run`,
      'autoscaler.yaml',
      { spec: { minReplicas: Number(least), maxReplicas: Number(most) } },
    ],
    [
      'nodes are drained one pod at a time',
      'disruption-budget.yaml',
      { spec: { maxUnavailable: 1 } },
    ],
    [
      'no pod runs that is not restricted',
      'namespace.yaml',
      { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
    ],
    [
      'the job brings the schema up to date',
      'migration/job.yaml',
      inPod({ command: ['./plant-store', 'migrate'] }),
    ],
    [
      'only the ingress controller and Prometheus in its own namespace reach the service',
      'network-policy.yaml',
      {
        spec: {
          policyTypes: expect.arrayContaining(['Ingress']),
          ingress: [
            {
              from: [
                {
                  namespaceSelector: {
                    matchLabels: { 'kubernetes.io/metadata.name': 'ingress-nginx' },
                  },
                },
                {
                  namespaceSelector: {
                    matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' },
                  },
                  podSelector: { matchLabels: { 'app.kubernetes.io/name': 'prometheus' } },
                },
              ],
              ports: [{ port: 'http' }],
            },
          ],
        },
      },
    ],
    [
      'the service reaches only ports in a list, which has those of the name server and of Postgres',
      'network-policy.yaml',
      {
        spec: {
          policyTypes: expect.arrayContaining(['Egress']),
          egress: [
            {
              ports: expect.arrayContaining([
                { port: 53, protocol: 'UDP' },
                { port: 5432, protocol: 'TCP' },
              ]),
            },
          ],
        },
      },
    ],
  ])('%s', (_, file, promised) => {
    expect(read(`deploy/kubernetes/${file}`)).toMatchObject(promised);
  });

  it('a pod that stops takes requests until its readiness probe has failed, and is killed only after all its timeouts', () => {
    const { terminationGracePeriodSeconds, containers } = podOf('deployment.yaml');
    const [{ env, readinessProbe }] = containers;
    const setting = (name: string) => Number(env.find((it) => it.name === name)!.value);
    const noticed = readinessProbe.periodSeconds * readinessProbe.failureThreshold * 1000;
    expect(setting('SHUTDOWN_DELAY_MS')).toBeGreaterThan(noticed);
    expect(terminationGracePeriodSeconds * 1000).toBeGreaterThan(
      setting('SHUTDOWN_DELAY_MS') + setting('SHUTDOWN_TIMEOUT_MS') + CLOSING_MS,
    );
  });

  it('a pod has the memory that it needs at rest, and may use what a flood of connections took', () => {
    const [rest, flood] = documented(/(\d+) MB at rest, and a constant \d+ to (\d+) MB/);
    const [{ resources }] = podOf('deployment.yaml').containers;
    const bytesOf = ({ memory }: { memory: string }) =>
      Number(/^(\d+)Mi$/.exec(memory)![1]) * 2 ** 20;
    expect(bytesOf(resources.requests)).toBeGreaterThan(Number(rest) * 1e6);
    expect(bytesOf(resources.limits)).toBeGreaterThan(Number(flood) * 1e6);
  });

  describe.each(['deployment.yaml', 'migration/job.yaml'])('%s', (file) => {
    it('has the settings of the secret that the operator makes', () => {
      expect(podOf(file).containers).toMatchObject([
        { envFrom: [{ secretRef: { name: secret } }] },
      ]);
    });

    it('runs as a user with a number, because a cluster cannot see that a name like that of the image is not root', () => {
      expect(textOf('Dockerfile')).toMatch(/^USER [a-z]+$/m);
      const { runAsUser } = podOf(file).securityContext;
      expect(Number.isInteger(runAsUser)).toBe(true);
      expect(runAsUser).toBeGreaterThan(0);
    });

    it('has the image that the operator sets in one place', () => {
      const [{ image }] = podOf(file).containers;
      expect(read(imageFile!)).toMatchObject({ images: [{ name: image }] });
    });
  });

  it('everything is in the namespace of the secret', () => {
    expect(read('deploy/kubernetes/namespace.yaml')).toMatchObject({
      metadata: { name: namespace },
    });
    for (const folder of ['deploy/kubernetes', 'deploy/kubernetes/migration']) {
      expect(read(`${folder}/kustomization.yaml`)).toMatchObject({ namespace });
    }
  });

  it.each(['deploy/kubernetes', 'deploy/kubernetes/migration'])(
    'the network policy applies to the pods of %s',
    (folder) => {
      const { spec } = read('deploy/kubernetes/network-policy.yaml') as {
        spec: { podSelector: { matchLabels: Record<string, string> } };
      };
      const { labels } = read(`${folder}/kustomization.yaml`) as {
        labels: { pairs: Record<string, string>; includeTemplates?: boolean }[];
      };
      // Without includeTemplates, only the objects get the labels, and no pod.
      const ofPods = labels.filter(({ includeTemplates }) => includeTemplates === true);
      expect(Object.assign({}, ...ofPods.map(({ pairs }) => pairs))).toMatchObject(
        spec.podSelector.matchLabels,
      );
    },
  );

  it('the service reaches the usual ports of the databases that are named, and of HAProxy', () => {
    const file = 'deploy/kubernetes/network-policy.yaml';
    const [, usual] = /the usual ports of ([^.]+)\./.exec(textOf(file).replaceAll('\n#', ''))!;
    const named = [...usual!.matchAll(/\((\d+)\)/g)].map(([, port]) => Number(port));
    const [haproxy] = documented(/listen postgres bind \*:(\d+) /);
    expect(named).toContain(Number(haproxy));
    const { spec } = read(file) as { spec: { egress: [{ ports: { port: number }[] }] } };
    expect(spec.egress[0].ports).toEqual(
      expect.arrayContaining(named.map((port) => ({ port, protocol: 'TCP' }))),
    );
  });
});

interface ComposeService {
  image: string;
  entrypoint?: string[];
  command?: string[];
  profiles?: string[];
  environment: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
  deploy: { replicas: number };
  restart: string;
  stop_grace_period: string;
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
  'plant-store': /^EXPOSE (\d+)$/m.exec(textOf('Dockerfile'))![1]!,
  nginx: /listen (\d+);/.exec(textOf('deploy/proxy/nginx.conf'))![1]!,
  // Their defaults.
  'prom/prometheus': '9090',
  'grafana/grafana': '3000',
};
const portOf = ({ image }: ComposeService) => PORTS[image.split(':')[0]!];

/** The folder of a container in which a service has a folder of this machine or a volume. */
const mountOf = (service: string, source: string) =>
  services[service]!.volumes.map((it) => it.split(':')).find(([from]) => from === source)?.[1];

describe('the Compose file', () => {
  it('opens ports for this machine only', () => {
    const ports = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(ports).not.toEqual([]);
    expect(ports).toEqual(ports.map(() => expect.stringMatching(/^127\.0\.0\.1:\d+:\d+$/)));
  });

  const address = 'http://127\\.0\\.0\\.1:(\\d+)';

  it.each([
    ['plant-store', 'README.md', `curl -X POST ${address}/plants`, undefined],
    ['proxy', 'docs/deployment.md', `--profile scale up .*<${address}>`, 'scale'],
    ['plant-store-sharded', 'docs/deployment.md', `--profile sharded up .*<${address}>`, 'sharded'],
    ['grafana', 'docs/monitoring.md', `Grafana \\(<${address}>`, 'observability'],
    ['prometheus', 'docker-compose.yml', 'Prometheus on :(\\d+)', 'observability'],
  ])('opens the port of %s that %s names', (name, file, pattern, profile) => {
    const [, port] = new RegExp(pattern).exec(textOf(file))!;
    const service = services[name]!;
    expect(service.profiles).toEqual(profile && [profile]);
    expect(service.ports).toEqual([`127.0.0.1:${port}:${portOf(service)}`]);
  });

  it('has as many replicas behind the proxy as docs/deployment.md says', () => {
    const [replicas] = documented(/\| (\w+) replicas behind a proxy/);
    expect(services['plant-store-replica']!.deploy.replicas).toBe(numberOf(replicas!));
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
    expect(textOf('deploy/proxy/start')).toContain(`\${BODY_LIMIT:-${limit}}`);
    expect(`${/client_max_body_size (\w+);/.exec(textOf('deploy/proxy/nginx.conf'))![1]}b`).toBe(
      limit,
    );
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
    const [, behind] = /server ([\w-]+):3000 resolve/.exec(textOf('deploy/proxy/nginx.conf'))!;
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

  it.each(plantStores)('gives %s the time that it needs to stop', (_, service) => {
    const needed = defaultOf('SHUTDOWN_DELAY_MS') + defaultOf('SHUTDOWN_TIMEOUT_MS') + CLOSING_MS;
    expect(service.environment).not.toHaveProperty('SHUTDOWN_TIMEOUT_MS');
    expect(millisecondsOf(service.stop_grace_period)).toBeGreaterThan(needed);
  });

  it('keeps the plants in a volume, which remains without the container', () => {
    expect(mountOf('postgres', 'postgres-data')).toBe('/var/lib/postgresql');
    expect(compose.volumes).toHaveProperty('postgres-data');
  });

  describe('on Citus', () => {
    const migration = dependencyOf(services['plant-store-sharded']!);
    const [, , coordinator] = URL_PARTS.exec(databaseUrlOf(migration))!;
    const servers = Object.entries(services)
      .filter(([, { image, command }]) => image.startsWith('citusdata/') && command === undefined)
      .map(([name]) => name);

    it('distributes the plants with the command of docs/scaling.md', () => {
      const [command] = documented(/distribute the plants: ```sh (\.\/plant-store [\w -]+) ```/);
      expect(migration.command).toEqual(command!.split(' '));
    });

    it('adds all workers to the coordinator, as many as docs/deployment.md says, when they are there', () => {
      const [workers] = documented(/on Citus, (\w+) workers/);
      expect(servers).toHaveLength(1 + numberOf(workers!));
      const { command, environment, depends_on } = dependencyOf(migration);
      expect(environment['PGHOST']).toBe(coordinator);
      const added = [...command!.join('\n').matchAll(/citus_(?:set|add)_\w+\('([^']+)'/g)];
      expect(added.map(([, name]) => name)).toEqual(servers);
      expect(depends_on).toEqual(
        Object.fromEntries(servers.map((name) => [name, { condition: 'service_healthy' }])),
      );
    });
  });

  it('has a proxy that waits longer than a request may take', () => {
    const [, timeout] = /proxy_read_timeout (\w+);/.exec(textOf('deploy/proxy/nginx.conf'))!;
    // Six for a token that waits for others and then for its own statements: see docs/limits.md.
    expect(millisecondsOf(timeout!)).toBeGreaterThan(6 * defaultOf('DATABASE_TIMEOUT_MS'));
  });
});

describe('the monitoring of the Compose file', () => {
  const prometheus = read('deploy/prometheus/prometheus.yml') as {
    global: { scrape_interval: string };
    rule_files: string[];
    scrape_configs: [
      {
        job_name: string;
        authorization: { credentials_file: string };
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

  it('reads the metrics of all instances on Postgres, at the port of the image', () => {
    const [{ names, port }] = job.dns_sd_configs;
    const instances = plantStores.filter(([, { profiles }]) => !profiles?.includes('sharded'));
    expect(names).toEqual(instances.map(([name]) => name));
    expect(textOf('Dockerfile')).toMatch(new RegExp(`^EXPOSE ${port}$`, 'm'));
  });

  it('has the token for metrics in the file that docs/monitoring.md tells the operator to make, which every user can read', () => {
    // Beside prometheus.yml, to which Prometheus relates the path.
    const file = `deploy/prometheus/${job.authorization.credentials_file}`;
    // A secret of Compose would be a warning, or a folder, for those who do not make the file.
    expect(compose).not.toHaveProperty('secrets');
    expect(textOf('docs/monitoring.md')).toContain(
      `openssl rand -hex 32 | tr -d '\\n' | install -m 644 /dev/stdin ${file}\n`,
    );
  });

  it('passes the hash of that token, which the operator exports, on to all instances', () => {
    const [variable] = documented(/export (\w+)=\$\(sha256sum .* docker compose --profile observ/);
    expect(plantStores.map(([name, { environment }]) => [name, environment[variable!]])).toEqual(
      plantStores.map(([name]) => [name, `\${${variable}:-}`]),
    );
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

  it('has a user of Grafana whose password is the one that docs/monitoring.md names', () => {
    const [variable, password] = documented(/user `admin`, password `(\w+)`, by default `(\w+)`/);
    const { environment } = services['grafana']!;
    expect(environment).not.toHaveProperty('GF_SECURITY_ADMIN_USER');
    expect(environment['GF_SECURITY_ADMIN_PASSWORD']).toBe(`\${${variable}:-${password}}`);
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

describe('deploy/kubernetes/migrate', () => {
  const { metadata, spec } = read('deploy/kubernetes/migration/job.yaml') as {
    metadata: { name: string };
    spec: { activeDeadlineSeconds: number };
  };
  const { namespace } = read('deploy/kubernetes/kustomization.yaml') as { namespace: string };
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'plant-store-migrate-'));
  });
  afterEach(() => rm(dir, { recursive: true }));

  /** A program that records its arguments, and then runs these lines. */
  async function fake(name: string, lines: string): Promise<void> {
    const file = join(dir, name);
    await writeFile(file, `#!/bin/sh\necho "${name} $*" >> '${dir}/calls'\n${lines}\n`);
    await chmod(file, 0o755);
  }

  type Condition = Readonly<Record<'type' | 'status' | 'message', string>>;
  const condition = (type: string, message = '', status = 'True') => ({ type, status, message });

  /** The lines of shell that answer each question about a job with these conditions, as kubectl does. */
  function job(...conditions: Condition[]): string {
    const members = ['type', 'status', 'message'] as const;
    const answers = conditions.flatMap((asked) =>
      members.flatMap((filter) =>
        members.map((member) => {
          const found = conditions.filter((it) => it[filter] === asked[filter]);
          const path = `{.status.conditions[?(@.${filter}=="${asked[filter]}")].${member}}`;
          return `*'-o jsonpath=${path}') echo '${found.map((it) => it[member]).join(' ')}' ;;`;
        }),
      ),
    );
    return `case "$*" in ${answers.join('\n')} esac`;
  }

  /**
   * @param state the lines of shell that answer each question about the job
   * @param log those that answer a question about its log
   * @param changes those that change the job
   */
  async function migrate(
    state: string,
    log = `echo 'the log'`,
    changes: Readonly<Partial<Record<'delete' | 'apply', string>>> = {},
  ): Promise<{ command: Command; calls: string[] }> {
    await fake('sleep', '');
    await fake(
      'kubectl',
      `case "$*" in
        '-n ${namespace} get job ${metadata.name} '*) ${state} ;;
        '-n ${namespace} logs job/${metadata.name}') ${log} ;;
        *' delete '*) ${changes.delete ?? ':'} ;;
        apply*) ${changes.apply ?? 'test -f migration/kustomization.yaml'} ;;
        *) exit 1 ;;
      esac`,
    );
    const command = runProgram(join(ROOT, 'deploy/kubernetes/migrate'), [], {
      PATH: `${dir}:${process.env['PATH']}`,
    });
    await command.exit();
    return { command, calls: (await readFile(join(dir, 'calls'), 'utf8')).trim().split('\n') };
  }

  const COMPLETE = job(
    condition('Suspended', 'Job resumed', 'False'),
    condition('SuccessCriteriaMet'),
    condition('Complete'),
  );
  const FAILED = job(
    condition('FailureTarget', 'the first reason'),
    condition('Failed', 'the reason'),
  );

  it('deletes the job of the release before, applies its own, and succeeds when that has completed', async () => {
    const { command, calls } = await migrate(COMPLETE);
    expect(calls).toEqual([
      `kubectl -n ${namespace} delete job ${metadata.name} --ignore-not-found`,
      'kubectl apply -k migration',
      expect.stringMatching(`^kubectl -n ${namespace} get job ${metadata.name} `),
    ]);
    expect(await command.exit()).toBe(0);
  });

  it('ends with 1, the log and the reason when the job has failed', async () => {
    const { command } = await migrate(FAILED);
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toBe('the log\nThe migration has failed: the reason\n');
  });

  it('ends with 1 and the reason when the job has failed and its log is gone', async () => {
    const { command } = await migrate(FAILED, `echo 'no pods' >&2; exit 1`);
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toBe('no pods\nThe migration has failed: the reason\n');
  });

  it.each(['delete', 'apply'])(
    'ends with the exit code of kubectl and its reason when it cannot %s the job',
    async (change) => {
      const { command, calls } = await migrate(COMPLETE, '', {
        [change]: `echo 'not allowed' >&2; exit 3`,
      });
      expect(await command.exit()).toBe(3);
      expect(command.stderr).toBe('not allowed\n');
      expect(calls.at(-1)).toContain(change);
    },
  );

  it('asks again when the job has not ended, or a question fails', async () => {
    const answers = `case $(grep -c 'get job' '${dir}/calls') in
      1) ${job(condition('FailureTarget'))} ;; 2) exit 1 ;; *) ${COMPLETE} ;; esac`;
    const { command, calls } = await migrate(answers);
    expect(calls.filter((call) => call.startsWith('sleep'))).toHaveLength(2);
    expect(await command.exit()).toBe(0);
  });

  it('gives up with 2, and not before the job has reached its own deadline', async () => {
    const { command, calls } = await migrate(job());
    expect(await command.exit()).toBe(2);
    const seconds = calls.map((call) => Number(/^sleep (\d+)$/.exec(call)?.[1] ?? 0));
    expect(seconds.reduce((sum, it) => sum + it)).toBeGreaterThan(spec.activeDeadlineSeconds);
  });
});
