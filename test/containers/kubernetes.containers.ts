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
    for (const pod of ['migration', 'service']) {
      await engine('pod', 'kill', `plant-store-test-${pod}`).catch(() => undefined);
      await engine('pod', 'rm', '--force', `plant-store-test-${pod}`);
    }
    await engine('secret', 'rm', 'plant-store');
    await postgres.remove();
    await rm(folder, { recursive: true });
  });

  /** Runs the pod of a file. */
  async function play(name: string, file: string): Promise<string> {
    const { spec } = parse(await readFile(join('deploy/kubernetes', file), 'utf8')) as {
      spec: { template: { spec: PodSpec } };
    };
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `plant-store-test-${name}` },
      spec: spec.template.spec,
    };
    for (const container of pod.spec.containers) {
      container.image = 'localhost/plant-store:latest';
      // Podman would open them on the host, where other containers use them.
      delete container.ports;
    }
    // Podman asks for a probe's named port at port 0.
    const path = join(folder, `${name}.yaml`);
    await writeFile(path, stringify(pod).replaceAll('port: http', 'port: 3000'));
    // In the folder of the project, podman would take the file "plant-store" for the source of an image.
    const play = ['play', 'kube', `--network=${postgres.network}`, path];
    await promisify(execFile)(ENGINE, play, { cwd: folder });
    return `plant-store-test-${name}-${pod.spec.containers[0]!.name}`;
  }

  it('migrate, and then serve, read-only and within their limits of memory', async () => {
    const migration = await play('migration', 'migration/job.yaml');
    expect(await engine('wait', migration)).toBe('0');
    expect(await postgres.query('SELECT count(*) > 0 FROM migrations')).toEqual(['t']);

    const service = await play('service', 'deployment.yaml');
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
