import { timingSafeEqual } from 'node:crypto';
import { Inject, Injectable, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { AuthGuard } from '@nestjs/passport';
import type { Request } from 'express';
import { CONFIG, type Config } from '../config/config.js';
import { tokenInvalid, tokenMissing } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { hashAccessToken } from './access-token.js';
import type { Caller } from './caller.js';
import { ForMetricsToken } from './metrics-token.decorator.js';
import { Public } from './public.decorator.js';
import { TokenVerifierService } from './token-verifier.service.js';

/** Accepts a request if its route is public or its Authorization header has a valid bearer token. */
@Injectable()
export class BearerGuard extends AuthGuard('bearer') {
  constructor(
    private readonly reflector: Reflector,
    private readonly tokenVerifier: TokenVerifierService,
    @Inject(CONFIG) private readonly config: Config,
  ) {
    super();
  }

  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const request = requestOf(context);
    const token = bearerToken(request);
    // On a public route, too, a cached token names the caller for the log.
    request.user = token === undefined ? undefined : this.tokenVerifier.findCached(token);
    if (request.user !== undefined || this.isPublic(context)) return true;
    if (token === undefined) throw tokenMissing();
    return this.isMetricsToken(token, context) || (super.canActivate(context) as Promise<boolean>);
  }

  private isPublic(context: ExecutionContext): boolean {
    const targets = [context.getHandler(), context.getClass()];
    return this.reflector.getAllAndOverride(Public, targets) === true;
  }

  /** The metrics token is checked without the database: metrics are needed most while the database is unavailable. */
  private isMetricsToken(token: string, context: ExecutionContext): boolean {
    const hash = this.config.auth.metricsTokenHash;
    if (hash === undefined) return false;
    if (this.reflector.get(ForMetricsToken, context.getHandler()) !== true) return false;
    return timingSafeEqual(hashAccessToken(token), Buffer.from(hash, 'hex'));
  }

  /**
   * Passport gets only the Authorization header, with one space before the token. From the whole request, the strategy
   * would also accept a token in the body or in the query, which ends up in logs, and would refuse a second space.
   */
  override getRequest(context: ExecutionContext): object {
    return { headers: { authorization: `Bearer ${bearerToken(requestOf(context))}` } };
  }

  override handleRequest<User extends Caller>(
    error: unknown,
    caller: User | false,
    _info: unknown,
    context: ExecutionContext,
  ): User {
    const request = requestOf(context);
    const isInvalid = error instanceof ServiceError && error.code === tokenInvalid.code;
    if (error && !isInvalid) throw error as Error;
    if (!caller) {
      // Passport itself refuses only a token with a space in it.
      const refusal = isInvalid ? error : tokenInvalid('it contains a space');
      // `ip` is undefined only when the connection is closed. Any address will do then: nobody reads the response.
      throw this.tokenVerifier.countInvalid(request.ip ?? '::', refusal);
    }
    // @nestjs/passport sets the user on the object from `getRequest`, not on the request.
    request.user = caller;
    return caller;
  }
}

const requestOf = (context: ExecutionContext): Request => context.switchToHttp().getRequest();

/** RFC 6750 section 2.1 and RFC 9110 section 11.1: the scheme in any case, one or more spaces, the token. */
function bearerToken({ headers }: Request): string | undefined {
  return /^bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1];
}
