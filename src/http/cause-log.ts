// For operators in an outage, whose log would otherwise fill the disk.

import type { Logger } from 'pino';
import type { ErrorCode } from '../errors/error-codes.js';
import { SEND_AGAIN, type ServiceError } from '../errors/service-error.js';

const INTERVAL_MS = 1000;

/**
 * Logs the cause of failures at most once a second for each error number, with a count of the failures. All requests fail for
 * the same cause, and a stack in the log entry of each of them would fill the disk.
 */
export class CauseLog {
  /** The failures since the last entry, by error number. */
  private readonly waiting = new Map<ErrorCode, { count: number; last?: ServiceError }>();

  constructor(private readonly logger: Logger) {}

  add(error: ServiceError): void {
    const waiting = this.waiting.get(error.code);
    if (waiting === undefined) {
      this.write(error, 1);
    } else {
      waiting.count++;
      waiting.last = error;
    }
  }

  private write({ code, message, cause }: ServiceError, count: number): void {
    const text = message.replace(` ${SEND_AGAIN}`, '');
    this.logger.error({ error: code, count, err: cause }, text);
    const waiting: { count: number; last?: ServiceError } = { count: 0 };
    this.waiting.set(code, waiting);
    setTimeout(() => {
      this.waiting.delete(code);
      if (waiting.last !== undefined) this.write(waiting.last, waiting.count);
    }, INTERVAL_MS).unref();
  }
}
