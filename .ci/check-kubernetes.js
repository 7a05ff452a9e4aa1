// Checks what a cluster would only say when it is too late: that the objects fit the schemas of the Kubernetes API, that every
// file is listed, that selectors match labels, that probes and services name ports that exist, and that the pods are allowed
// to run restricted.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { parse } from 'yaml';

const DIR = join(import.meta.dirname, '../deploy/kubernetes');
const read = (name) => parse(readFileSync(join(DIR, name), 'utf8'));

const { resources, labels } = read('kustomization.yaml');
const files = readdirSync(DIR).filter((name) => /^(?!kustomization).*\.yaml$/.test(name));
assert.deepEqual(resources.toSorted(), files.toSorted());

const objects = [...resources, 'migration/job.yaml'].map(read);
await checkSchemas(objects);

const image = join(DIR, 'image');
for (const dir of ['.', 'migration']) {
  const { components, images } = read(join(dir, 'kustomization.yaml'));
  assert.deepEqual(
    components.map((component) => join(DIR, dir, component)),
    [image],
    dir,
  );
  assert.equal(images, undefined, 'the image is named in one place');
}
const byKind = Object.fromEntries(objects.map((object) => [object.kind, object]));
const common = Object.assign(
  {},
  ...labels.filter(({ includeTemplates }) => includeTemplates).map(({ pairs }) => pairs),
);
const { Deployment, Job, Service, PodDisruptionBudget, HorizontalPodAutoscaler, NetworkPolicy } =
  byKind;
const podLabels = ({ spec }) => ({ ...common, ...spec.template.metadata.labels });

for (const [owner, selector] of [
  ['Deployment', Deployment.spec.selector.matchLabels],
  ['Service', Service.spec.selector],
  ['PodDisruptionBudget', PodDisruptionBudget.spec.selector.matchLabels],
  ['NetworkPolicy', NetworkPolicy.spec.podSelector.matchLabels],
]) {
  for (const [label, value] of Object.entries(selector)) {
    assert.equal(podLabels(Deployment)[label], value, `${owner} does not select the pods`);
  }
}
assert.equal(PodDisruptionBudget.spec.unhealthyPodEvictionPolicy, 'AlwaysAllow');
for (const { matchLabelKeys } of Deployment.spec.template.spec.topologySpreadConstraints) {
  assert.deepEqual(matchLabelKeys, ['pod-template-hash']);
}
assert.notDeepEqual(podLabels(Job), podLabels(Deployment), 'the service must not send to the job');
assert.equal(HorizontalPodAutoscaler.spec.scaleTargetRef.name, Deployment.metadata.name);
assert.equal(Deployment.spec.replicas, undefined, 'the autoscaler owns the number of replicas');
const { maxSurge, maxUnavailable } = Deployment.spec.strategy.rollingUpdate;
assert.ok(maxSurge !== 0 || maxUnavailable !== 0, 'no pod could ever be replaced');

const [container] = Deployment.spec.template.spec.containers;
const ports = container.ports.map(({ name }) => name);
for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
  assert.ok(ports.includes(container[probe].httpGet.port), `${probe} names no port`);
}
assert.ok(ports.includes(Service.spec.ports[0].targetPort));
const settingOf = ({ env }, name) => Number(env.find((entry) => entry.name === name).value);
const setting = (name) => settingOf(container, name);

const { startupProbe, readinessProbe } = container;
assert.ok(
  setting('DATABASE_START_TIMEOUT_MS') <
    startupProbe.periodSeconds * startupProbe.failureThreshold * 1000,
  'the startupProbe would end a pod that waits for the database',
);
const [migration] = Job.spec.template.spec.containers;
assert.ok(
  settingOf(migration, 'DATABASE_START_TIMEOUT_MS') < Job.spec.activeDeadlineSeconds * 1000,
  'the job would end before its log says why',
);
const DATABASE_TIMEOUT_MS = 1500;
assert.ok(DATABASE_TIMEOUT_MS < readinessProbe.timeoutSeconds * 1000);
assert.ok(setting('READINESS_TOLERANCE_MS') > 30_000, 'a failover would take all pods away');
for (const { from } of NetworkPolicy.spec.ingress) {
  assert.ok(from.length > 0, 'any pod could send X-Forwarded-For');
}

for (const { kind, spec } of [Deployment, Job]) {
  const pod = spec.template.spec;
  assert.equal(pod.securityContext.runAsNonRoot, true, kind);
  assert.ok(
    pod.securityContext.runAsUser > 0,
    `${kind}: the image names its user without a number`,
  );
  assert.equal(pod.securityContext.seccompProfile.type, 'RuntimeDefault', kind);
  for (const { securityContext, resources: limits } of pod.containers) {
    assert.equal(securityContext.allowPrivilegeEscalation, false, kind);
    assert.equal(securityContext.readOnlyRootFilesystem, true, kind);
    assert.deepEqual(securityContext.capabilities.drop, ['ALL'], kind);
    assert.ok(limits.requests.cpu && limits.requests.memory && limits.limits.memory, kind);
  }
}

/** The validators find wrong values, such as a memory of 1Mx; the types find unknown fields, which the validators accept. */
async function checkSchemas(objects) {
  for (const object of objects) {
    const models = await import(`kubernetes-models/${object.apiVersion}`);
    assert.ok(models[object.kind], `${object.apiVersion} has no kind ${object.kind}`);
    new models[object.kind](object).validate();
  }
  const source = objects.map(
    (object) =>
      `(${JSON.stringify(object)}) satisfies import('kubernetes-models/${object.apiVersion}').I${object.kind};`,
  );
  // This file is only in memory; its place decides where the types are found.
  const file = join(import.meta.dirname, 'kubernetes-objects.mts');
  const options = { module: ts.ModuleKind.NodeNext, strict: true, skipLibCheck: true, types: [] };
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, language, ...rest) =>
    name === file
      ? ts.createSourceFile(name, source.join('\n'), language)
      : getSourceFile(name, language, ...rest);
  const program = ts.createProgram([file], options, host);
  const problems = ts.getPreEmitDiagnostics(program).map(({ start, messageText }) => {
    const { line } = program.getSourceFile(file).getLineAndCharacterOfPosition(start ?? 0);
    return `${objects[line].kind}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
  assert.deepEqual(problems, []);
}
