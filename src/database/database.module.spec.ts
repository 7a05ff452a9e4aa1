import { expect, it } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { useResources } from '../../test/setup/jest/resources.js';
import { PATIENT } from '../../test/setup/database/patient.js';
import { openScriptedPostgres } from '../../test/setup/database/scripted-postgres.js';
import { readConfig } from '../config/config.js';
import { DatabaseModule } from './database.module.js';

const resources = useResources();

/** Says whether it takes writes. */
const startIn = (state: { isPrimary: boolean }) =>
  openScriptedPostgres(resources, {
    run: ({ text }) =>
      text === 'SHOW transaction_read_only'
        ? { rows: [{ transaction_read_only: state.isPrimary ? 'off' : 'on' }] }
        : {},
  });

it('the connections of the service lead to the primary in a list of hosts', async () => {
  const standby = await startIn({ isPrimary: false });
  const primary = await startIn({ isPrimary: true });
  const { database } = readConfig({
    DATABASE_URL: `postgres://plants@${standby.host}:${standby.port},${primary.host}:${primary.port}/plants`,
    ...PATIENT,
  });
  const module = DatabaseModule.register({ ...database, url: database.url! });
  const context = await NestFactory.createApplicationContext(module, {
    abortOnError: false,
    logger: false,
  });
  resources.defer(() => context.close());
  await context.get(DataSource).query('SELECT 1');
  expect(primary.statements.at(-1)).toMatchObject({ text: 'SELECT 1' });
  expect(standby.statements.map(({ text }) => text)).toEqual(['SHOW transaction_read_only']);
});
