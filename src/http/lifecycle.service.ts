import { Injectable } from '@nestjs/common';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';

/**
 * Where the process stands between start and stop.
 *
 * - serving: all is well.
 * - draining: no new connections; what arrives on open ones is still answered, and the connection closed.
 * - stopping: the database is about to go; whatever still arrives is refused.
 */
export type LifecyclePhase = 'serving' | 'draining' | 'stopping';

@Injectable()
export class LifecycleService {
  phase: LifecyclePhase = 'serving';

  /** @throws ServiceError shuttingDown, for whoever decides where to send the next request */
  refuseUnlessServing(): void {
    if (this.phase !== 'serving') throw shuttingDown();
  }
}

export function shuttingDown(): ServiceError {
  return new ServiceError(
    ErrorCode.shuttingDown,
    'This instance of the service is shutting down. Send the request again on a new connection.',
  );
}
