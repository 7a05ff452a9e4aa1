import type { Reply } from '../setup/database/postgres-messages.js';
import type { Script, ScriptedPostgres } from '../setup/database/scripted-postgres.js';

/** The statement that takes the lock of migrations. */
export const LOCK = 'SELECT pg_try_advisory_xact_lock($1) AS "isOurs"';

/** What a scripted Postgres replies as a database without tables, with other replies to some statements. */
export function emptyDatabase(replies: Record<string, () => Reply> = {}): Script {
  const all: Record<string, () => Reply> = {
    'SHOW server_encoding': () => ({ rows: [{ server_encoding: 'UTF8' }] }),
    [LOCK]: () => ({ rows: [{ isOurs: true }] }),
    ...replies,
  };
  return { run: ({ text }) => all[text]?.() };
}

const STEP =
  /^\s*(BEGIN|COMMIT|SAVEPOINT \w+|ROLLBACK.*|(?:CREATE|ALTER) TABLE "?\w+|INSERT INTO "\w+)|try_advisory/;

/** The beginnings of the statements that change something, or guard a change. */
export function stepsOf({ statements }: ScriptedPostgres): string[] {
  return statements.flatMap(({ text }) => {
    const step = STEP.exec(text);
    return step === null ? [] : [step[1] ?? 'lock'];
  });
}
