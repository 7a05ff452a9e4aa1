/** A stop takes this long after its two settings: the last second each for the database and the traces, see docs/limits.md. */
export const CLOSING_MS = 2000;
