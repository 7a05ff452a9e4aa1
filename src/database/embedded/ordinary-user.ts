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
const NOBODY = 65_534;

/**
 * Runs a program as `nobody`, with root's right to enter folders that are closed to others. Without `no_setuid_fixup`,
 * access(2) would ignore that right.
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

/** Runs a program in a user namespace where this user has the name of `nobody`. */
const withName = ['unshare', '--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`, '--'];

/**
 * Postgres refuses to run as root: for root, this finds a way to run it as an ordinary user.
 *
 * @param postgres the program
 * @throws StartError when this machine does not allow it
 */
export function findOrdinaryUser(postgres: string): OrdinaryUser {
  const uid = process.geteuid!();
  if (uid !== ROOT) return { command: [], uid };
  const [program, ...args] = [...asNobody, postgres, '--version'];
  const { status } = spawnSync(program, args, { stdio: 'ignore' });
  if (status === 0) return { command: asNobody, uid: NOBODY };
  throw new StartError(
    'Postgres refuses to run as root, and setpriv (of the package util-linux) cannot start it as another user here. Start the Plant Store as an ordinary user, or set DATABASE_URL to a Postgres server.',
  );
}

/** Like `findOrdinaryUser`, for a program that also refuses a user without a line in /etc/passwd. */
export function findNamedUser(postgres: string): OrdinaryUser {
  const user = findOrdinaryUser(postgres);
  return user.uid === NOBODY || hasName() ? user : { ...user, command: withName };
}

function hasName(): boolean {
  try {
    userInfo();
    return true;
  } catch {
    return false;
  }
}
