import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Response } from 'express';
import { CONFIG, type Config } from '../config/config.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';

/**
 * Refuses work at once, before its body is read, when as much as the service accepts is under way:
 * a queue without an end would make everybody wait until nobody is served.
 */
@Injectable()
export class AdmissionGuard implements CanActivate {
  private pending = 0;

  constructor(@Inject(CONFIG) private readonly config: Config) {}

  canActivate(context: ExecutionContext): boolean {
    if (this.pending >= this.config.http.maxPendingRequests) {
      throw new ServiceError(
        ErrorCode.overloaded,
        'The service has more work waiting than it accepts. Send the plant again in a moment.',
      );
    }
    this.pending++;
    context
      .switchToHttp()
      .getResponse<Response>()
      .once('close', () => this.pending--);
    return true;
  }
}
