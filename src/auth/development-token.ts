// The token for development, which `npm start` prints: it is kept in a file beside the embedded database.

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { describeFileError } from '../config/file-error.js';
import { developmentTokenFile } from '../database/embedded/data-dir.js';
import { StartError } from '../errors/start-error.js';
import type { AccessTokensService } from './access-tokens.service.js';
import { DEVELOPMENT } from './access-token.js';

/**
 * Finds the token for development of an embedded database, or makes one and keeps it in the data folder.
 *
 * @param log receives an entry for each token that is made or revoked, and the reason when the new one cannot be kept
 */
export async function findDevelopmentToken(
  tokens: AccessTokensService,
  dataDir: string,
  log: Pick<Logger, 'info' | 'warn'>,
): Promise<string> {
  const kept = readDevelopmentToken(dataDir);
  if (kept !== undefined && (await tokens.find(kept)) !== undefined) return kept;
  const { token, id, revoked } = await tokens.createDevelopmentToken();
  log.info({ token: DEVELOPMENT, tokenId: id }, `Created the token ${DEVELOPMENT}.`);
  for (const old of revoked) {
    log.info(
      { token: old.name, tokenId: old.id },
      `Revoked the token ${old.name}, which the new one replaces.`,
    );
  }
  try {
    keepDevelopmentToken(dataDir, token);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    log.warn(`${error.message} The next start makes another token for development.`);
  }
  return token;
}

/** @returns undefined if there is none, or it cannot be read: a new one replaces it */
function readDevelopmentToken(dataDir: string): string | undefined {
  try {
    return readFileSync(developmentTokenFile(dataDir), 'utf8').trim();
  } catch {
    return undefined;
  }
}

/**
 * Replaces the token for development, in a file that only this user can read.
 *
 * @throws StartError when it cannot be written
 */
export function keepDevelopmentToken(dataDir: string, token: string): void {
  const path = developmentTokenFile(dataDir);
  const next = `${path}.${process.pid}`;
  try {
    rmSync(next, { force: true });
    // A new file: an old one would keep its owner and its permissions.
    writeFileSync(next, `${token}\n`, { mode: 0o600, flag: 'wx', flush: true });
    renameSync(next, path);
  } catch (error) {
    throw new StartError(`${path} cannot be written: ${describeFileError(error)}.`, {
      cause: error,
    });
  }
}
