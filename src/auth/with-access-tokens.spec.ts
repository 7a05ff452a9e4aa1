import { expect, it } from '@jest/globals';
import { patientConfig } from '../../test/setup/database/patient.js';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { withAccessTokens } from './with-access-tokens.js';

const database = new UnitDatabase();

it('an action outside the application gets the tokens of the database', async () => {
  await database.openWithSchema([AccessTokenEntity]);
  const config = patientConfig({ url: database.url });
  const { token } = await withAccessTokens(config, (tokens) => tokens.create('greenhouse'));
  expect(await withAccessTokens(config, (tokens) => tokens.find(token))).toMatchObject({
    name: 'greenhouse',
  });
});
