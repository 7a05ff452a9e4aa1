import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { canMountDisk, mountSmallDisk } from '../setup/process/disk.js';
import { end, runService, urlOf } from '../setup/service/built-service.js';
import { runInProcess } from '../setup/service/cli.js';
import { outcomeOf, postPlant } from '../setup/http/post-plant.js';
import { until } from '../setup/time/until.js';

/** Large enough that a few hundred of them need a new file of Postgres. */
const NAME = 'a'.repeat(60_000);

/** How many plants are sent at once. */
const AT_ONCE = 20;

const itWithDisk = (await canMountDisk()) ? it : it.skip;

itWithDisk(
  'a disk that is full below the embedded Postgres: 503, nothing is lost, and it recovers by itself',
  async () => {
    const disk = (await mountSmallDisk('128m'))!;
    const DATA_DIR = join(disk.folder, 'data');
    const service = runService({ DATA_DIR });
    try {
      const url = await urlOf(service);
      const [token] = await service.waitFor(/plantstore_\w+/);
      const stored: number[] = [];
      let lastId = 0;
      const post = async () => {
        const id = ++lastId;
        const outcome = await outcomeOf(await postPlant(url, token, id, NAME));
        if (outcome === 200) stored.push(id);
        return outcome;
      };
      const postSome = () => Promise.all(Array.from({ length: AT_ONCE }, post));
      await disk.fill();
      let outcomes: number[];
      do outcomes = await postSome();
      while (outcomes.every((outcome) => outcome === 200));
      expect(new Set([200, 50300, ...outcomes])).toEqual(new Set([200, 50300]));
      await disk.free();
      await until(async () => (await post()) === 200);
      const { stdout } = await runInProcess(['plants', 'export'], { DATA_DIR });
      const ids = new Set(stdout.split('\n').map((line) => Number(line.split(',')[0])));
      expect(stored.filter((id) => !ids.has(id))).toEqual([]);
      service.process.kill('SIGTERM');
      expect(await service.exit()).toBe(0);
    } finally {
      await end(service);
      await disk.close();
    }
  },
);
