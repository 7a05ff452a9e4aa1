// The table of plants.

import { EntitySchema, type EntitySchemaColumnOptions } from 'typeorm';
import { isRequired, TEXT_FIELDS, type Plant } from './dto/plant.js';

/** The row of a plant; rows are only inserted, never changed. The id is an int64 as decimal digits: a number would round it. */
export type StoredPlant = { readonly id: string } & {
  readonly [Field in keyof Plant]-?: string | null;
};

const columnOf = (field: string): EntitySchemaColumnOptions => ({
  type: 'text',
  nullable: !isRequired(field),
});

export const PlantEntity = new EntitySchema<StoredPlant>({
  name: 'plants',
  columns: {
    id: { type: 'bigint', primary: true, primaryKeyConstraintName: 'plants_pkey' },
    ...Object.fromEntries(TEXT_FIELDS.map((field) => [field, columnOf(field)])),
    createdAt: { name: 'created_at', type: 'timestamptz', default: () => 'now()' },
  } as never,
});
