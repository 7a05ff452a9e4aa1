/** All migrations in their order. The steps are the beginnings of their statements. */
export const MIGRATIONS = [
  { name: 'CreatePlants1763600000000', steps: ['CREATE TABLE plants'] },
  { name: 'CreateAccessTokens1763600100000', steps: ['CREATE TABLE access_tokens'] },
] as const;

export const MIGRATION_NAMES = MIGRATIONS.map(({ name }) => name);
