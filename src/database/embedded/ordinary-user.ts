import { spawnSync } from 'node:child_process';
import { userInfo } from 'node:os';
import { StartError } from '../../errors/start-error.js';

/** How the programs of Postgres are started, and as which user. */
export interface OrdinaryUser {
  /** Stands before a program and its arguments; empty if this user can start the program directly. */
  readonly command: readonly string[];
  /** The user to whom the files of Postgres must belong. */
  readonly uid: number;
}

const ROOT = 0;

/** The user `nobody` of Linux. */
export const NOBODY = 65_534;

/** Runs a program in a user namespace of its own, where this user has the name of `nobody`. Its files remain this user's. */
const inUserNamespace = [
  'unshare',
  '--user',
  `--map-user=${NOBODY}`,
  `--map-group=${NOBODY}`,
  '--',
];

/**
 * Runs a program as `nobody`, with root's right to enter folders that are closed to others. Containers may do this, whose
 * engine often forbids user namespaces. Without `no_setuid_fixup`, access(2) ignores that right.
 */
const asNobody = [
  'setpriv',
  `--reuid=${NOBODY}`,
  `--regid=${NOBODY}`,
  '--clear-groups',
  '--securebits=+no_setuid_fixup',
  '--inh-caps=+dac_override',
  '--ambient-caps=+dac_override',
];

/**
 * Postgres refuses to run as root: for root, this finds a way to run it as an ordinary user. In a user namespace, root cannot
 * enter the closed folders of other users.
 *
 * @param postgres the program
 * @throws StartError when this machine has none
 */
export function findOrdinaryUser(postgres: string): OrdinaryUser {
  const uid = process.geteuid!();
  if (uid !== ROOT) return { command: [], uid };
  if (runs(inUserNamespace, postgres)) return { command: inUserNamespace, uid };
  if (runs(asNobody, postgres)) return { command: asNobody, uid: NOBODY };
  throw new StartError(
    'Postgres refuses to run as root, and neither unshare nor setpriv of util-linux can start it as another user here. Start the Plant Store as an ordinary user, or set DATABASE_URL to a Postgres server.',
  );
}

/** Like `findOrdinaryUser`, for a program that also refuses a user without a line in /etc/passwd. */
export function findNamedUser(postgres: string): OrdinaryUser {
  const user = findOrdinaryUser(postgres);
  return user.uid === ROOT || hasName() ? user : { ...user, command: inUserNamespace };
}

function hasName(): boolean {
  try {
    userInfo();
    return true;
  } catch {
    return false;
  }
}

function runs([program, ...args]: readonly string[], postgres: string): boolean {
  return spawnSync(program!, [...args, postgres, '--version'], { stdio: 'ignore' }).status === 0;
}
