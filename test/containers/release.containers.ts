import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { runProgram } from '../setup/process/command.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { engine, ENGINE, environment } from './engine.js';

const resources = useResources();

interface Workflow {
  jobs: { release: { steps: { id?: string; run?: string }[] } };
}

/** Builds for this machine instead of all platforms, which it writes to a file, and keeps the image instead of pushing it. */
const DOCKER = `#!/bin/bash
set -eu
[ "$*" = 'buildx create --use' ] && exit
[ "$1 $2" = 'buildx build' ]
shift 2
args=()
while [ $# -gt 0 ]; do
  case $1 in
    --push | --sbom=* | --provenance=*) ;;
    --platform) echo "$2" > "$RUNNER_TEMP/platforms" && shift ;;
    --metadata-file) echo '{ "containerimage.digest": "sha256:0123" }' > "$2" && shift ;;
    *) args+=("$1") ;;
  esac
  shift
done
# This script may hide the real one.
PATH=\${PATH#*:}
exec "$ENGINE" build $BUILD_OPTIONS "\${args[@]}"
`;

it('the image of a release is for amd64 and arm64, and says which version and commit it is, where its source is, and when it was built', async () => {
  const workflow = parse(await readFile('.github/workflows/release.yml', 'utf8')) as Workflow;
  const { run } = workflow.jobs.release.steps.find(({ id }) => id === 'build')!;
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
  const folder = await temporaryFolder(resources);
  const image = 'ghcr.io/example/plant-store';
  try {
    await writeFile(join(folder, 'docker'), DOCKER, { mode: 0o755 });
    const output = join(folder, 'output');
    const build = runProgram('bash', ['-eo', 'pipefail', '-c', run!], {
      ...environment(),
      PATH: `${folder}:${process.env['PATH']}`,
      ENGINE,
      BUILD_OPTIONS: process.env['CONTAINER_BUILD_OPTIONS']!,
      RUNNER_TEMP: folder,
      GITHUB_OUTPUT: output,
      GITHUB_REF_NAME: `v${version}`,
      GITHUB_REPOSITORY: 'Example/Plant-Store',
      GITHUB_SERVER_URL: 'https://git.example.org',
      GITHUB_SHA: '0123456789abcdef0123456789abcdef01234567',
    });
    expect([await build.exit(), build.stderr]).toEqual([0, expect.any(String)]);
    expect(await readFile(output, 'utf8')).toBe(`image=${image}\ndigest=sha256:0123\n`);
    expect(await readFile(join(folder, 'platforms'), 'utf8')).toBe('linux/amd64,linux/arm64\n');
    const format = '--format={{json .Config.Labels}}';
    const labels = await engine('image', 'inspect', format, `${image}:${version}`);
    expect(JSON.parse(labels)).toMatchObject({
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.source': 'https://git.example.org/Example/Plant-Store',
      'org.opencontainers.image.revision': '0123456789abcdef0123456789abcdef01234567',
      'org.opencontainers.image.created': expect.stringMatching(
        /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
      ),
    });
  } finally {
    const names = await engine('image', 'ls', '--format={{.Repository}}:{{.Tag}}', image);
    for (const name of names.split('\n').filter(Boolean)) await engine('image', 'rm', name);
  }
});
