import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CannotRunError } from '../setup/fault-program.js';
import { findInstalledPostgres } from '../setup/database/postgres-server.js';

/** The programs of a cluster, and the packages of Debian that have them. */
const PACKAGES = {
  etcd: 'etcd-server',
  patroni: 'patroni',
  haproxy: 'haproxy',
  pgbouncer: 'pgbouncer',
} as const;

/** Paths of the programs; `postgres` is the folder of Postgres' programs. */
export type Programs = Readonly<Record<keyof typeof PACKAGES | 'postgres', string>>;

/** @throws CannotRunError that names what to install */
export async function findPrograms(): Promise<Programs> {
  if (process.platform !== 'linux') throw new CannotRunError('Did not run: this needs Linux.');
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/usr/sbin'];
  const found: Record<string, string> = {};
  const missing: string[] = [];
  for (const [program, name] of Object.entries(PACKAGES)) {
    const path = folders.map((folder) => join(folder, program)).find((file) => existsSync(file));
    if (path === undefined) missing.push(name);
    else found[program] = path;
  }
  const postgres = await findInstalledPostgres().catch(() => undefined);
  if (postgres === undefined) missing.push('postgresql');
  if (missing.length > 0) {
    throw new CannotRunError(
      `Did not run: install the missing packages first: apt-get install ${missing.join(' ')}`,
    );
  }
  return { ...found, postgres } as Programs;
}
