/** The fields of a plant, in the order of the columns of CSV. Each has a column of the same name in the table `plants`. */
export const PLANT_FIELDS = ['id', 'name', 'tag'] as const;

/** The fields that every plant has. */
export const REQUIRED_FIELDS: readonly string[] = ['id', 'name'];

/** The fields that are texts. */
export const TEXT_FIELDS = PLANT_FIELDS.filter((field) => field !== 'id');
