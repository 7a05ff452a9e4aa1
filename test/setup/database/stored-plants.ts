/** A row of the table, with the id as Postgres prints it: a number of JavaScript is not exact enough. */
export interface StoredPlant {
  readonly id: string;
  readonly name: string;
  readonly tag: string | null;
}

/** Reads rows of `StoredPlant`. */
export const SELECT_PLANTS = 'SELECT id::text AS id, name, tag FROM plants';
