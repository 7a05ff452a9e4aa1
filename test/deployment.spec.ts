import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { settings } from '../src/config/config.js';
import { ROOT, runProgram, type Command } from './setup/command.js';

const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const read = (file: string): unknown => parse(textOf(file), { merge: true });

const defaultOf = (name: 'DATABASE_TIMEOUT_MS' | 'SHUTDOWN_DELAY_MS' | 'SHUTDOWN_TIMEOUT_MS') =>
  settings.shape[name].parse(undefined);

/** The last second each for the database and the traces: see "Bounds" in docs/operations.md. */
const CLOSING_MS = 2000;

/** @param text such as `20s` */
const millisecondsOf = (text: string) => Number(/^(\d+)s$/.exec(text)![1]) * 1000;

const inPod = (container: object) => ({
  spec: { template: { spec: { containers: [container] } } },
});
const withSetting = (name: string, value: string) => ({
  env: expect.arrayContaining([{ name, value }]),
});

describe('the Kubernetes files, as docs/operations.md promises', () => {
  const [, least, most] = /autoscaler from (\d+) to (\d+)/.exec(
    textOf('docs/operations.md').replaceAll(/\s+/g, ' '),
  )!;

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

  it('a pod that stops takes requests until its readiness probe has failed, and is killed only after all its time-outs', () => {
    const { terminationGracePeriodSeconds, containers } = (
      read('deploy/kubernetes/deployment.yaml') as {
        spec: {
          template: {
            spec: {
              terminationGracePeriodSeconds: number;
              containers: [
                {
                  env: { name: string; value: string }[];
                  readinessProbe: { periodSeconds: number; failureThreshold: number };
                },
              ];
            };
          };
        };
      }
    ).spec.template.spec;
    const [{ env, readinessProbe }] = containers;
    const setting = (name: string) => Number(env.find((it) => it.name === name)!.value);
    const noticed = readinessProbe.periodSeconds * readinessProbe.failureThreshold * 1000;
    expect(setting('SHUTDOWN_DELAY_MS')).toBeGreaterThan(noticed);
    expect(terminationGracePeriodSeconds * 1000).toBeGreaterThan(
      setting('SHUTDOWN_DELAY_MS') + setting('SHUTDOWN_TIMEOUT_MS') + CLOSING_MS,
    );
  });
});

interface ComposeService {
  image: string;
  command?: string[];
  profiles?: string[];
  environment: Record<string, string>;
  depends_on: Record<string, { condition: string }>;
  stop_grace_period: string;
  ports?: string[];
  volumes: string[];
  secrets: string[];
}

const compose = read('docker-compose.yml') as {
  services: Record<string, ComposeService>;
  volumes: Record<string, unknown>;
  secrets: Record<string, { file: string }>;
};
const { services } = compose;
const plantStores = Object.entries(services).filter(
  ([, { image, command }]) => image === 'plant-store' && command === undefined,
);

/** The folder of a container in which a service has a folder of this machine or a volume. */
const mountOf = (service: string, source: string) =>
  services[service]!.volumes.map((it) => it.split(':')).find(([from]) => from === source)?.[1];

describe('the Compose file', () => {
  it('opens ports for this machine only', () => {
    const ports = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(ports).not.toEqual([]);
    expect(ports).toEqual(ports.map(() => expect.stringMatching(/^127\.0\.0\.1:\d+:\d+$/)));
  });

  it('trusts a proxy in exactly the instances that only the proxy reaches', () => {
    const [, behind] = /server ([\w-]+):3000 resolve/.exec(textOf('deploy/proxy/nginx.conf'))!;
    expect(services[behind!]).not.toHaveProperty('ports');
    expect(
      plantStores.map(([name, { environment }]) => [name, environment['TRUSTED_PROXY_HOPS']]),
    ).toEqual(plantStores.map(([name]) => [name, name === behind ? '1' : undefined]));
  });

  it.each(plantStores)('starts %s when its migration has succeeded', (_, { depends_on }) => {
    const [[migration, { condition }]] = Object.entries(depends_on) as [
      [string, { condition: string }],
    ];
    expect(services[migration]!.command!.slice(0, 2)).toEqual(['./plant-store', 'migrate']);
    expect(condition).toBe('service_completed_successfully');
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

  it('has a proxy that waits longer than a request may take', () => {
    const [, timeout] = /proxy_read_timeout (\w+);/.exec(textOf('deploy/proxy/nginx.conf'))!;
    // Six for a token that waits for others and then for its own statements: see "Bounds" in docs/operations.md.
    expect(millisecondsOf(timeout!)).toBeGreaterThan(6 * defaultOf('DATABASE_TIMEOUT_MS'));
  });
});

describe('the monitoring of the Compose file', () => {
  const prometheus = read('deploy/prometheus/prometheus.yml') as {
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

  it('has the token for metrics that docs/operations.md tells the operator to make', () => {
    const { secrets } = services['prometheus']!;
    expect(secrets.map((name) => `/run/secrets/${name}`)).toEqual([
      job.authorization.credentials_file,
    ]);
    const file = compose.secrets[secrets[0]!]!.file.replace('./', '');
    expect(textOf('docs/operations.md')).toContain(
      `openssl rand -hex 32 | tr -d '\\n' > ${file}\n`,
    );
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

  /** @param conditions the lines of shell that answer each question about the end of the job */
  async function migrate(conditions: string): Promise<{ command: Command; calls: string[] }> {
    await fake('sleep', '');
    await fake(
      'kubectl',
      `case "$*" in
        *'?(@.status=='*) ${conditions} ;;
        *message*) echo 'the reason' ;;
        *logs*) echo 'the log' ;;
        *apply*) test -f migration/kustomization.yaml ;;
      esac`,
    );
    const command = runProgram(join(ROOT, 'deploy/kubernetes/migrate'), [], {
      PATH: `${dir}:${process.env['PATH']}`,
    });
    await command.exit();
    return { command, calls: (await readFile(join(dir, 'calls'), 'utf8')).trim().split('\n') };
  }

  it('deletes the job of the release before, applies its own, and succeeds when that has completed', async () => {
    const { command, calls } = await migrate('echo SuccessCriteriaMet Complete');
    expect(calls).toEqual([
      `kubectl -n ${namespace} delete job ${metadata.name} --ignore-not-found`,
      'kubectl apply -k migration',
      expect.stringMatching(`^kubectl -n ${namespace} get job ${metadata.name} `),
    ]);
    expect(await command.exit()).toBe(0);
  });

  it('ends with 1, the log and the reason when the job has failed', async () => {
    const { command } = await migrate('echo FailureTarget Failed');
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toBe('the log\nThe migration has failed: the reason\n');
  });

  it('asks again when the job has not ended, or a question fails', async () => {
    const answers = `case $(grep -c 'get job' '${dir}/calls') in
      1) echo FailureTarget ;; 2) exit 1 ;; *) echo Complete ;; esac`;
    const { command, calls } = await migrate(answers);
    expect(calls.filter((call) => call.startsWith('sleep'))).toHaveLength(2);
    expect(await command.exit()).toBe(0);
  });

  it('gives up with 2, and not before the job has reached its own deadline', async () => {
    const { command, calls } = await migrate('');
    expect(await command.exit()).toBe(2);
    const seconds = calls.map((call) => Number(/^sleep (\d+)$/.exec(call)?.[1] ?? 0));
    expect(seconds.reduce((sum, it) => sum + it)).toBeGreaterThan(spec.activeDeadlineSeconds);
  });
});
