import { isRequired, TEXT_FIELDS } from '../../../src/plants/dto/plant.js';

/** The fields that a plant may lack. */
export const OPTIONAL_FIELDS = TEXT_FIELDS.filter((field) => !isRequired(field)) as Exclude<
  (typeof TEXT_FIELDS)[number],
  'name'
>[];

export type OptionalField = (typeof OPTIONAL_FIELDS)[number];

/** The texts of a plant. A field that it lacks is left out, so that a test names only the fields that it is about. */
export type PlantTexts = Readonly<
  { name: string } & {
    [field in OptionalField]?: string;
  }
>;

/** @returns the optional fields that have a value */
export function present(
  fields: Readonly<Partial<Record<OptionalField, string | null | undefined>>>,
): Omit<PlantTexts, 'name'> {
  return Object.fromEntries(Object.entries(fields).filter(([, text]) => text != null));
}

/** @returns an object with these fields */
export function recordOf<Field extends string, Value>(
  fields: readonly Field[],
  valueOf: (field: Field, index: number) => Value,
): Record<Field, Value> {
  return Object.fromEntries(fields.map((field, i) => [field, valueOf(field, i)])) as Record<
    Field,
    Value
  >;
}
