import { PLANT_FIELDS } from '../../../src/plants/dto/plant.js';
import { present, type OptionalField, type PlantTexts } from '../model/plant.js';

/** A row of the table without its NULLs, with the id as Postgres prints it: a number of JavaScript is not exact enough. */
export type StoredPlant = { readonly id: string } & PlantTexts;

type Row = Pick<StoredPlant, 'id' | 'name'> & Record<OptionalField, string | null>;

const COLUMNS = PLANT_FIELDS.map((field) => `${field}::text AS ${field}`).join();

/** @param rest of the SELECT, such as a condition */
export async function readStoredPlants(
  database: { query(sql: string, parameters?: unknown[]): Promise<object[]> },
  rest = '',
  ...parameters: unknown[]
): Promise<StoredPlant[]> {
  const rows = (await database.query(`SELECT ${COLUMNS} FROM plants ${rest}`, parameters)) as Row[];
  return rows.map(({ id, name, ...fields }) => ({ id, name, ...present(fields) }));
}
