import type { Logger } from 'pino';
import type { ErrorCode } from '../errors/error-codes.js';
import type { ServiceError } from '../errors/service-error.js';

const INTERVAL_MS = 1000;

/**
 * Logs the cause of failures at most once a second for each error number, with the number of failures: in an outage all
 * requests fail for one cause, and its stack in the log entry of each would fill a disk.
 */
export class CauseLog {
  private readonly waiting = new Map<ErrorCode, ServiceError[]>();

  constructor(private readonly logger: Logger) {}

  add(error: ServiceError): void {
    const waiting = this.waiting.get(error.code);
    if (waiting === undefined) this.write([error]);
    else waiting.push(error);
  }

  private write(errors: readonly ServiceError[]): void {
    const { code, message, cause } = errors.at(-1)!;
    this.logger.error({ error: code, count: errors.length, err: cause }, message);
    this.waiting.set(code, []);
    setTimeout(() => {
      const waiting = this.waiting.get(code)!;
      this.waiting.delete(code);
      if (waiting.length > 0) this.write(waiting);
    }, INTERVAL_MS).unref();
  }
}
