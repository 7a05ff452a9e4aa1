/** The names of all migrations, in their order. */
export const MIGRATION_NAMES = ['CreatePlants1763600000000', 'CreateAccessTokens1763600100000'];
