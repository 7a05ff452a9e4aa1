// Decides what becomes of plants that are sent: a batch of requests, or a part of a file.

import { TEXT_FIELDS, type NewPlant } from './dto/plant.js';
import type { StoredPlant } from './plant.entity.js';
import type { PlantsRepository } from './plants.repository.js';

/** Repeated: the same plant was stored before. Refused: the id belongs to a different plant. */
export type Outcome = 'created' | 'repeated' | 'refused';

/**
 * Stores the plants whose ids are free.
 *
 * @param areInShard whether all of them are in one shard of a distributed table
 * @returns the outcome of each plant, in the same order
 * @throws ServiceError databaseUnavailable
 */
export async function storePlants(
  repository: PlantsRepository,
  plants: readonly NewPlant[],
  areInShard: boolean,
): Promise<Outcome[]> {
  // If several plants have one id, only the first is sent: a returned id then belongs to one plant.
  const firsts = new Map<bigint, NewPlant>();
  for (const plant of plants) {
    if (!firsts.has(plant.id)) firsts.set(plant.id, plant);
  }
  const inserted = await repository.insert([...firsts.values()], areInShard);
  if (inserted.length === plants.length) return plants.map(() => 'created');

  const created = new Set(inserted);
  const taken = [...firsts.keys()].filter((id) => !created.has(id));
  // Stored plants never change, so reading them after the insert is safe.
  const found = taken.length > 0 ? await repository.find(taken) : [];
  const stored = new Map(found.map((plant) => [BigInt(plant.id), plant]));
  return plants.map((plant) => {
    const { id } = plant;
    const storedOrSent = created.has(id) ? firsts.get(id) : stored.get(id);
    if (storedOrSent === plant) return 'created';
    // An administrator deleted the row between the two statements: no outcome is true, so this batch fails.
    if (storedOrSent === undefined) throw new Error(`Plant ${id} was neither inserted nor found`);
    return isSamePlant(plant, storedOrSent) ? 'repeated' : 'refused';
  });
}

function isSamePlant(plant: NewPlant, other: NewPlant | StoredPlant): boolean {
  return TEXT_FIELDS.every((field) => (plant[field] ?? null) === (other[field] ?? null));
}
