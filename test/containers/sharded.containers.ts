import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  openCitusCluster,
  whyNoCitus,
  type CitusCluster,
} from '../setup/database/citus-cluster.js';
import { runContainer } from './engine.js';

const missing = process.env['TEST_CITUS_URL'] === undefined ? await whyNoCitus() : undefined;
if (missing !== undefined) {
  process.stderr.write(`NOT RUN: the commands of the sharded profile. ${missing}\n`);
}

// The commands of the profile "sharded" of docker-compose.yml, on a cluster of this machine.
(missing === undefined ? describe : describe.skip)('the image, on Citus', () => {
  let cluster: CitusCluster;

  beforeAll(async () => {
    cluster = await openCitusCluster();
  });
  afterAll(() => cluster.close());

  it('distributes the plants, and serves', async () => {
    const options = ['--network=host', `--env=DATABASE_URL=${cluster.url}`, '--env=PORT=0'];
    const run = (...command: string[]) => runContainer(options, command);
    const migration = run('./plant-store', 'migrate', '--distribute');
    expect(await migration.output.exit()).toBe(0);
    expect(migration.output.stderr).toContain('servers: 2.');
    await migration.remove();
    const service = run('./plant-store', 'start');
    try {
      await service.output.waitFor(/listens on http/);
      expect(await service.exec('./plant-store', 'token', 'create', 'me')).toContain('plantstore_');
    } finally {
      await service.remove();
    }
  });
});
