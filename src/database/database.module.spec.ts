import { expect, it } from '@jest/globals';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getRepositoryToken, TypeOrmModule } from '@nestjs/typeorm';
import { Entity, PrimaryColumn, type Repository } from 'typeorm';
import { useResources } from '../../test/setup/jest/resources.js';
import { PATIENT } from '../../test/setup/database/patient.js';
import { openScriptedPostgres, openServerIn } from '../../test/setup/database/scripted-postgres.js';
import { readConfig } from '../config/config.js';
import { DatabaseModule } from './database.module.js';

const resources = useResources();

@Entity('things')
class Thing {
  @PrimaryColumn('int')
  id: number;
}

/** Opens an application with a feature that registers an entity. */
async function open(url: string): Promise<INestApplicationContext> {
  const { database } = readConfig({ DATABASE_URL: url, ...PATIENT });
  const imports = [
    DatabaseModule.register({ ...database, url: database.url! }),
    TypeOrmModule.forFeature([Thing]),
  ];
  const context = await NestFactory.createApplicationContext(
    { module: class {}, imports },
    { abortOnError: false, logger: false },
  );
  resources.defer(() => context.close());
  return context;
}

it('the entities of a feature are those that it registers', async () => {
  const { url } = await openServerIn(resources, { isPrimary: true });
  const context = await open(url);
  const things = context.get<Repository<Thing>>(getRepositoryToken(Thing));
  expect(things.metadata.tableName).toBe('things');
});

it('a database that cannot be used ends the start at the first attempt', async () => {
  const server = await openScriptedPostgres(resources, {
    login: () => ({ error: { code: '28P01' } }),
  });
  await expect(open(server.url)).rejects.toMatchObject({ code: '28P01' });
  expect(server.connections).toHaveLength(1);
});
