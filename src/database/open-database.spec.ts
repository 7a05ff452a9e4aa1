import { stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { useResources } from '../../test/setup/jest/resources.js';
import { makeDataDir, postgresPidIn, removeDataDir } from '../../test/setup/service/data-dir.js';
import { patientConfig } from '../../test/setup/database/patient.js';
import { DataDirInUseError } from './embedded/embedded-postgres.js';
import { joinDatabase, openDatabase, type OpenDatabase } from './open-database.js';

it.each([openDatabase, joinDatabase])(
  'a server that is set is used as it is (%p)',
  async (open) => {
    const config = patientConfig({ url: 'postgres://db/plants' });
    const database = await open(config, () => undefined);
    expect(database.config).toEqual(config);
    await expect(database.close()).resolves.toBeUndefined();
  },
);

describe('a data folder that is open', () => {
  const resources = useResources();
  let dataDir: string;

  beforeEach(async () => {
    dataDir = await makeDataDir();
    resources.defer(() => removeDataDir(dataDir));
  });

  const configOf = (startTimeout = 60_000) => patientConfig({ dataDir, startTimeout });

  const silent = () => undefined;

  async function open(opening: Promise<OpenDatabase>): Promise<OpenDatabase> {
    const database = await opening;
    resources.defer(() => database.close());
    return database;
  }

  async function connect(): Promise<void> {
    const client = new pg.Client({
      host: join(dataDir, 'postgres'),
      user: 'postgres',
      database: 'postgres',
    });
    await client.connect();
    await client.end();
  }

  it('is made, for this user only', async () => {
    const made = join(dataDir, 'new');
    const database = await open(openDatabase({ ...configOf(), dataDir: made }, silent));
    expect(database.config).toMatchObject({ dataDir: made, isEmbedded: true });
    expect((await stat(made)).mode & 0o777).toBe(0o700);
  });

  it('is opened whatever the environment says for clients of other servers', async () => {
    process.env['PGOPTIONS'] = '-c plant.wrong';
    await open(openDatabase(configOf(), silent));
    expect(process.env['PGOPTIONS']).toBeUndefined();
  });

  it('is refused to a second service, with the process that has it', async () => {
    await open(openDatabase(configOf(), silent));
    const second = openDatabase(configOf(), silent);
    await expect(second).rejects.toBeInstanceOf(DataDirInUseError);
    await expect(second).rejects.toThrow(
      `${dataDir} is in use by another Plant Store (its Postgres, which ends with it, is the process ${await postgresPidIn(dataDir)}). Stop that one, or set DATA_DIR to another folder.`,
    );
  });

  it('is refused to a second service that has another name for the database', async () => {
    await open(openDatabase(configOf(), silent));
    const otherDir = await makeDataDir();
    resources.defer(() => removeDataDir(otherDir));
    await symlink(join(dataDir, 'postgres'), join(otherDir, 'postgres'));
    await expect(openDatabase({ ...configOf(), dataDir: otherDir }, silent)).rejects.toThrow(
      `${otherDir} is in use by another Plant Store (its Postgres, which ends with it, is the process ${await postgresPidIn(dataDir)}).`,
    );
  });

  it('is joined by a command if a service has it', async () => {
    const service = await open(openDatabase(configOf(), silent));
    const command = await joinDatabase(configOf());
    expect(command.config).toEqual(service.config);
    await command.close();
    await connect();
  });

  it.each([openDatabase, joinDatabase])(
    'is waited for while a command has it (%p)',
    async (openAgain) => {
      const command = await open(joinDatabase(configOf()));
      const waiting = openAgain(configOf(), silent);
      // Both have tried once, in this order, when the second one gives up.
      await expect(openAgain(configOf(0), silent)).rejects.toBeInstanceOf(DataDirInUseError);
      await command.close();
      await open(waiting);
    },
  );
});
