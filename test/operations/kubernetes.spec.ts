import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { parse } from 'yaml';
import { settings } from '../../src/config/settings.js';
import { ROOT } from '../setup/process/command.js';
import { CLOSING_MS } from './closing-time.js';

const DIR = join(ROOT, 'deploy/kubernetes');
const read = (file: string): unknown => parse(readFileSync(join(DIR, file), 'utf8'));

/** At least the memory that docs/limits.md names: of a process at rest, and during a flood of connections. */
const REST_BYTES = 165e6;
const FLOOD_BYTES = 500e6;

type Labels = Record<string, string>;

interface Probe {
  httpGet: { port: string };
  periodSeconds: number;
  timeoutSeconds: number;
  failureThreshold?: number;
}

interface Container {
  image: string;
  env: { name: string; value: string }[];
  ports: { name: string }[];
  startupProbe: Probe;
  livenessProbe: Probe;
  readinessProbe: Probe;
  resources: Record<'requests' | 'limits', { cpu?: string; memory: string }>;
}

interface Workload {
  metadata: { name: string };
  spec: {
    replicas?: number;
    selector: { matchLabels: Labels };
    template: {
      metadata: { labels: Labels };
      spec: {
        terminationGracePeriodSeconds: number;
        securityContext: { runAsUser: number };
        containers: [Container];
      };
    };
  };
}

interface Kustomization {
  namespace: string;
  resources: string[];
  images: { name: string }[];
  labels: { pairs: Labels; includeTemplates?: boolean }[];
}

const kustomization = read('kustomization.yaml') as Kustomization;
const deployment = read('deployment.yaml') as Workload;
const pod = deployment.spec.template.spec;
const [service] = pod.containers;
const settingOf = (name: string) => Number(service.env.find((it) => it.name === name)!.value);

/** The labels of a pod. Without includeTemplates, only the objects get those of the kustomization. */
const podLabels = Object.assign(
  {},
  ...kustomization.labels
    .filter(({ includeTemplates }) => includeTemplates === true)
    .map(({ pairs }) => pairs),
  deployment.spec.template.metadata.labels,
) as Labels;

const inPod = (container: object, more: object = {}) => ({
  spec: { template: { spec: { containers: [container], ...more } } },
});

/** Three failures are the default of Kubernetes. */
const secondsUntilFailure = ({ periodSeconds, failureThreshold = 3 }: Probe) =>
  periodSeconds * failureThreshold;

const SPREAD = { whenUnsatisfiable: 'ScheduleAnyway', matchLabelKeys: ['pod-template-hash'] };

interface KubernetesObject {
  apiVersion: string;
  kind: string;
}

/** What TypeScript finds in objects whose types are those of the Kubernetes API: for example, unknown fields. */
function typeErrors(objects: KubernetesObject[]): string[] {
  const source = objects.map(
    (object) =>
      `(${JSON.stringify(object)}) satisfies import('kubernetes-models/${object.apiVersion}').I${object.kind};`,
  );
  // This file is only in memory; its place decides where the types are found.
  const file = join(import.meta.dirname, 'kubernetes-objects.mts');
  const options = { module: ts.ModuleKind.NodeNext, strict: true, skipLibCheck: true, types: [] };
  const host = ts.createCompilerHost(options);
  const getSourceFile = host.getSourceFile.bind(host);
  host.getSourceFile = (name, language, ...rest) =>
    name === file
      ? ts.createSourceFile(name, source.join('\n'), language)
      : getSourceFile(name, language, ...rest);
  const program = ts.createProgram([file], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ start, messageText }) => {
    const { line } = program.getSourceFile(file)!.getLineAndCharacterOfPosition(start ?? 0);
    return `${objects[line]!.kind}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
}

// That the pods migrate and serve, with the settings of their secret, is tested by test/containers/kubernetes.containers.ts.
describe('the Kubernetes files', () => {
  it('fit the schemas of the Kubernetes API', async () => {
    const objects = kustomization.resources.map((file) => read(file) as KubernetesObject);
    expect(typeErrors(objects)).toEqual([]);
    // The types know no formats, such as the one of an amount of memory; the validators accept unknown fields.
    for (const object of objects) {
      const models = (await import(`kubernetes-models/${object.apiVersion}`)) as Record<
        string,
        new (object: KubernetesObject) => { validate: () => void }
      >;
      new models[object.kind]!(object).validate();
    }
  });

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
      { spec: { strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } } },
    ],
    [
      'the pods of a release are spread over zones and machines, and also run where there is only one',
      'deployment.yaml',
      {
        spec: {
          template: {
            spec: {
              topologySpreadConstraints: [
                { topologyKey: 'topology.kubernetes.io/zone', ...SPREAD },
                { topologyKey: 'kubernetes.io/hostname', ...SPREAD },
              ],
            },
          },
        },
      },
    ],
    [
      'the address of a client is the one that the ingress names, and no earlier one',
      'deployment.yaml',
      inPod({ env: expect.arrayContaining([{ name: 'TRUSTED_PROXY_HOPS', value: '1' }]) }),
    ],
    [
      'the commands of the documentation find a pod',
      'deployment.yaml',
      { metadata: { name: 'plant-store' } },
    ],
    [
      'the autoscaler changes the number of pods, from 2 to 8',
      'autoscaler.yaml',
      {
        spec: {
          scaleTargetRef: { name: deployment.metadata.name },
          minReplicas: 2,
          maxReplicas: 8,
        },
      },
    ],
    [
      'the pods have the settings of the secret that the operator makes',
      'deployment.yaml',
      inPod({ envFrom: [{ secretRef: { name: 'plant-store' } }] }),
    ],
    [
      'the pods have limits, and only the rights that they need',
      'deployment.yaml',
      inPod(
        {
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          resources: {
            requests: { cpu: expect.any(String), memory: expect.any(String) },
            limits: { memory: expect.any(String) },
          },
        },
        {
          automountServiceAccountToken: false,
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        },
      ),
    ],
    [
      'nodes are drained one pod at a time, also if it is not ready',
      'disruption-budget.yaml',
      { spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' } },
    ],
    [
      'no pod runs that is not restricted',
      'namespace.yaml',
      { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
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
      'the service reaches only name servers, HAProxy and the databases that it works with',
      'network-policy.yaml',
      {
        spec: {
          policyTypes: expect.arrayContaining(['Egress']),
          egress: [
            {
              ports: [
                { port: 53, protocol: 'UDP' },
                ...[53, 5000, 5432, 6432].map((port) => ({ port, protocol: 'TCP' })),
              ],
            },
          ],
        },
      },
    ],
  ])('%s', (_, file, promised) => {
    expect(read(file)).toMatchObject(promised);
  });

  it('every file is applied', () => {
    const files = readdirSync(DIR).filter((name) => /^(?!kustomization).*\.yaml$/.test(name));
    expect(kustomization.resources.toSorted()).toEqual(files.toSorted());
  });

  it('the number of pods is the one of the autoscaler', () => {
    expect(deployment.spec).not.toHaveProperty('replicas');
  });

  it.each(['deployment', 'service', 'disruption-budget', 'network-policy'])(
    '%s.yaml selects the pods of the service',
    (name) => {
      const { spec } = read(`${name}.yaml`) as {
        spec: {
          selector?: Labels & { matchLabels?: Labels };
          podSelector?: { matchLabels: Labels };
        };
      };
      const selector =
        spec.podSelector?.matchLabels ?? spec.selector!.matchLabels ?? spec.selector!;
      expect(selector).not.toEqual({});
      expect(podLabels).toMatchObject(selector);
    },
  );

  it('the ingress reaches the service at port 80', () => {
    expect(read('service.yaml')).toMatchObject({ spec: { ports: [{ name: 'http', port: 80 }] } });
  });

  it('probes and the service name ports that exist', () => {
    const names = service.ports.map(({ name }) => name);
    const { spec } = read('service.yaml') as { spec: { ports: [{ targetPort: string }] } };
    for (const { httpGet } of [
      service.startupProbe,
      service.livenessProbe,
      service.readinessProbe,
    ]) {
      expect(names).toContain(httpGet.port);
    }
    expect(names).toContain(spec.ports[0].targetPort);
  });

  it('a pod that starts waits for the database for 15 minutes, and is not ended before its log says why', () => {
    const timeout = settingOf('DATABASE_START_TIMEOUT_MS');
    expect(timeout).toBe(900_000);
    expect(timeout).toBeLessThan(secondsUntilFailure(service.startupProbe) * 1000);
  });

  it('a pod that is busy for half a minute is not restarted', () => {
    expect(secondsUntilFailure(service.livenessProbe)).toBeGreaterThanOrEqual(30);
  });

  it('a failover of 60 seconds takes no requests away from a pod', () => {
    expect(settingOf('READINESS_TOLERANCE_MS')).toBe(60_000);
    expect(settings.shape.DATABASE_TIMEOUT_MS.parse(undefined)).toBeLessThan(
      service.readinessProbe.timeoutSeconds * 1000,
    );
  });

  it('a pod that stops takes requests until its readiness probe has failed, and is killed only after all its timeouts', () => {
    const delay = settingOf('SHUTDOWN_DELAY_MS');
    expect(delay).toBeGreaterThan(secondsUntilFailure(service.readinessProbe) * 1000);
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(
      delay + settingOf('SHUTDOWN_TIMEOUT_MS') + CLOSING_MS,
    );
  });

  it('a pod has the memory that it needs at rest, and may use what a flood of connections took', () => {
    const bytesOf = ({ memory }: { memory: string }) =>
      Number(/^(\d+)Mi$/.exec(memory)![1]) * 2 ** 20;
    expect(bytesOf(service.resources.requests)).toBeGreaterThan(REST_BYTES);
    expect(bytesOf(service.resources.limits)).toBeGreaterThan(FLOOD_BYTES);
  });

  it('the pods run as a user with a number', () => {
    // The image names its user without one, so that a cluster cannot see that it is not root.
    const { runAsUser } = pod.securityContext;
    expect(Number.isInteger(runAsUser) && runAsUser > 0).toBe(true);
  });

  it('the operator sets the image in one place', () => {
    expect(kustomization.images.map(({ name }) => name)).toEqual([service.image]);
  });

  it('everything is in one namespace', () => {
    expect(read('namespace.yaml')).toMatchObject({ metadata: { name: 'plant-store' } });
    expect(kustomization.namespace).toBe('plant-store');
  });
});
