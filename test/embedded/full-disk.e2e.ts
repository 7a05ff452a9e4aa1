import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { canMountDisk, mountSmallDisk } from '../setup/process/disk.js';
import { runService, urlOf } from '../setup/service/built-service.js';
import { outcomeOf, postPlant } from '../setup/http/post-plant.js';
import { until } from '../setup/time/until.js';

/** Large enough that a few hundred of them need a new file of Postgres. */
const NAME = 'a'.repeat(60_000);

const itWithDisk = (await canMountDisk()) ? it : it.skip;

itWithDisk(
  'a disk that is full below the embedded Postgres: 503, nothing is lost, and it recovers by itself',
  async () => {
    const disk = (await mountSmallDisk('256m'))!;
    try {
      const service = runService({ DATA_DIR: join(disk.folder, 'data') });
      const url = await urlOf(service);
      const [token] = await service.waitFor(/plantstore_\w+/);
      const post = async (id: number, name = `${NAME}${id}`) =>
        outcomeOf(await postPlant(url, token, id, name));
      expect(await post(1)).toBe(200);
      await disk.fill();
      let last = 1;
      while ((await post(last + 1)) === 200) last++;
      expect(await post(last + 1)).toBe(50300);
      await disk.free();
      await until(async () => (await post(last + 1)) === 200);
      for (let id = 1; id <= last + 1; id++) expect(await post(id, 'other')).toBe(40006);
      service.process.kill('SIGTERM');
      expect(await service.exit()).toBe(0);
    } finally {
      await disk.close();
    }
  },
);
