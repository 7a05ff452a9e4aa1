/** All migrations in their order. The steps are their statements up to the name of the table. */
export const MIGRATIONS = [
  { name: 'CreatePlants1763600000000', steps: ['CREATE TABLE plants'] },
  { name: 'CreateAccessTokens1763600100000', steps: ['CREATE TABLE access_tokens'] },
] as const;

export const MIGRATION_NAMES = MIGRATIONS.map(({ name }) => name);
