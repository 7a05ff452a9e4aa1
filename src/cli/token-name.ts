import { mayContainAccessToken } from '../auth/access-token.js';
import { UsageError } from './command-error.js';

const NAME = /^(?=.*[\p{L}\p{N}])[\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,100}$/u;

/**
 * Names are shown in lists and logs, so a name must be readable, and must not be a token.
 *
 * @throws UsageError
 */
export function checkName(name: string): void {
  if (mayContainAccessToken(name)) {
    throw new UsageError(
      'This is a token or a part of one, not a name: a name cannot contain "plantstore_".',
    );
  }
  if (!NAME.test(name)) {
    throw new UsageError(
      'A name must have 1 to 100 visible characters, at least one of them a letter or a digit.',
    );
  }
}
