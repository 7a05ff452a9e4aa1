import type pg from 'pg';
import type { RunContext } from './exit-code.js';
import type { Kind } from './plan.js';
import type { ServiceProcess } from './service.js';

/** What a fault may use besides the rig itself. */
export interface Circumstances {
  /** @returns a whole number from 0, less than `below` */
  readonly random: (below: number) => number;
  /** Resets all connections of the clients, so that responses in flight reach nobody. */
  readonly resetConnections: () => void;
}

/**
 * Causes a fault, and takes it back.
 *
 * @returns what was done, in a few words
 * @throws Error when it cannot be taken back
 */
export type Fault = (circumstances: Circumstances) => Promise<string>;

/** Services on a Postgres that are ready for load, and the faults of both. */
export interface Rig {
  readonly services: readonly ServiceProcess[];
  /** Databases to which plain clients send plants, so that their outages can be compared with those of the services. */
  readonly plainDatabases: readonly { readonly label: string; readonly url: string }[];
  /** The address of the database, for commands. */
  readonly url: string;
  /** The clients of each service, and their pause after each plant. */
  readonly load: { readonly clients: number; readonly pauseMs: number };
  /** The load between two faults. */
  readonly pauseMs: { readonly shortest: number; readonly longest: number };
  /** The faults that can be caused on this machine. */
  readonly faults: Readonly<Partial<Record<Kind, Fault>>>;
  /** Those that may cost a client its connection. */
  readonly losesConnections: readonly Kind[];
  /** A sentence for each reason why other faults cannot be caused. */
  readonly leftOut: readonly string[];
  /** Versions of the programs, besides that of Postgres. */
  readonly versions: Readonly<Record<string, string>>;
  /** Runs SQL as a superuser, in the database of the services. */
  query<Row extends pg.QueryResultRow>(sql: string): Promise<Row[]>;
  /** Waits until the next fault may come. */
  becomesComplete(): Promise<void>;
}

/**
 * @param settings that differ from the defaults
 * @param resources gets all that must be released
 * @throws CannotRunError that names what to install
 * @throws Error when a program does not start, or the run is interrupted
 */
export type OpenRig = (
  settings: Readonly<Record<string, string>>,
  context: RunContext,
  resources: AsyncDisposableStack,
) => Promise<Rig>;
