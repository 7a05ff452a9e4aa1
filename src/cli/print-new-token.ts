import type { ShowToken } from '../auth/access-tokens.service.js';
import { writeResult, type Streams } from './streams.js';

/**
 * Prints a new token before it is committed.
 *
 * @param make calls `show` with the token, and resolves when the token is committed
 * @returns the id of the token; undefined if none was made
 */
export async function printNewToken(
  { stdout, stderr }: Streams,
  make: (show: ShowToken) => Promise<unknown>,
): Promise<{ readonly id: string } | undefined> {
  let isPrinted = false;
  let made: { readonly id: string } | undefined;
  try {
    await make(async (token, id) => {
      await writeResult(stdout, token);
      isPrinted = true;
      made = { id };
    });
    return made;
  } catch (error) {
    if (isPrinted) {
      stderr.write('The printed token may not have been stored. Do not use it; create another.\n');
    }
    throw error;
  }
}
