/** The fields of a plant, in the order of the columns of CSV. Each has a column of the same name in the table `plants`. */
export const PLANT_FIELDS = ['id', 'name', 'tag'] as const;
