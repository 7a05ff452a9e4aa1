import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { until } from '../setup/time/until.js';
import { isStored, postPlant } from '../setup/http/post-plant.js';
import { engine, ENGINE, isPodman } from './engine.js';
import { startPostgres, type Postgres } from './postgres.js';

interface PodSpec {
  containers: { name: string; image: string; ports?: unknown }[];
}

const POD = 'plant-store-test';

const PASSWORD = 'secret/of#Kubernetes';

// Docker has no command that runs Kubernetes files.
(isPodman ? describe : describe.skip)('the Kubernetes files', () => {
  let postgres: Postgres;
  let folder: string;

  beforeAll(async () => {
    postgres = await startPostgres(PASSWORD);
    folder = await mkdtemp(join(tmpdir(), 'plant-store-kubernetes-'));
    const url = `postgres://plants:${encodeURIComponent(PASSWORD)}@${postgres.host}:5432/plants`;
    const secret = { DATABASE_URL: Buffer.from(url).toString('base64') };
    await writeFile(join(folder, 'secret.json'), JSON.stringify(secret));
    await engine('secret', 'create', 'plant-store', join(folder, 'secret.json'));
  });
  afterAll(async () => {
    await engine('pod', 'kill', POD).catch(() => undefined);
    await engine('pod', 'rm', '--force', POD);
    await engine('secret', 'rm', 'plant-store');
    await postgres.remove();
    await rm(folder, { recursive: true });
  });

  /** Runs the pod of the deployment, and returns the name of its container. */
  async function play(): Promise<string> {
    const { spec } = parse(await readFile('deploy/kubernetes/deployment.yaml', 'utf8')) as {
      spec: { template: { spec: PodSpec } };
    };
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: POD },
      spec: spec.template.spec,
    };
    for (const container of pod.spec.containers) {
      container.image = 'localhost/plant-store:latest';
      // Podman would open them on the host, where other containers use them.
      delete container.ports;
    }
    // Podman asks for a probe's named port at port 0.
    const path = join(folder, 'pod.yaml');
    await writeFile(path, stringify(pod).replaceAll('port: http', 'port: 3000'));
    // In the folder of the project, podman would take the file "plant-store" for the source of an image.
    const play = ['play', 'kube', `--network=${postgres.network}`, path];
    await promisify(execFile)(ENGINE, play, { cwd: folder });
    return `${POD}-${pod.spec.containers[0]!.name}`;
  }

  it('migrate and serve, read-only and within their limits of memory', async () => {
    const service = await play();
    await until(async () => (await engine('logs', service)).includes('listens on'));
    const created = await engine('exec', service, './plant-store', 'token', 'create', 'me');
    const token = /plantstore_\w+/.exec(created)![0];
    const infra = await engine('inspect', '--format={{.Pod}}', service);
    const id = await engine('pod', 'inspect', '--format={{.InfraContainerID}}', infra);
    const format = '--format={{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}';
    const url = `http://${await engine('inspect', format, id)}:3000`;
    expect((await postPlant(url, token, '1')).status).toBe(200);
    expect(await isStored(url, token, '1')).toBe(true);
    expect(await postgres.query('SELECT id FROM plants')).toEqual(['1']);
    expect(await engine('inspect', '--format={{.HostConfig.ReadonlyRootfs}}', service)).toBe(
      'true',
    );
  });
});
