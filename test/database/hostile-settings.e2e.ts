import { expect, it } from '@jest/globals';
import { useHostileSettings } from '../setup/database/hostile-settings.js';
import { runInProcess } from '../setup/service/cli.js';
import { startService } from '../setup/service/service.js';

// A database may give its sessions any settings: no statement may mean something else then. hostile-settings.server.ts
// runs whole files with them.
useHostileSettings();

it('a database whose settings are hostile is migrated, and stores and exports what was sent, once', async () => {
  const service = await startService();
  try {
    const plants = [
      { id: '1', name: 'Große Küchenschelle', tag: `'"\\{},NULL` },
      { id: '2', name: 'NULL', tag: 'NULL' },
      { id: '3', name: 'NULL' },
    ];
    const bodies = plants.map(({ id, ...texts }) => JSON.stringify({ id: Number(id), ...texts }));
    for (const _ of ['created', 'repeated']) {
      const responses = await Promise.all(bodies.map((body) => service.post(body)));
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
    expect(await service.post('{"id":3,"name":"NULL","tag":"NULL"}')).toMatchObject({
      body: { error: 40006 },
    });
    expect(await service.storedPlants()).toEqual(plants);
    const env = { DATABASE_URL: service.database.url };
    expect(await runInProcess(['plants', 'export'], env)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('1,Große Küchenschelle,"\'""\\{},NULL"\n'),
    });
  } finally {
    await service.close();
  }
});
