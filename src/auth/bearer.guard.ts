import { timingSafeEqual } from 'node:crypto';
import { Inject, Injectable, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { AuthGuard } from '@nestjs/passport';
import type { Request } from 'express';
import { CONFIG, type Config } from '../config/config.js';
import { tokenInvalid, tokenMissing } from '../errors/service-error.js';
import { hashAccessToken } from './access-token.js';
import type { Caller } from './caller.js';
import { ForMetricsToken } from './metrics-token.decorator.js';
import { Public } from './public.decorator.js';
import { TokenVerifierService } from './token-verifier.service.js';

/** Accepts a request if its route is public or its Authorization header carries a valid bearer token. */
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
    const request = context.switchToHttp().getRequest<Request>();
    const token = bearerToken(request.headers.authorization);
    // Also on public routes, so that the log entry has the caller, if the verdict about its token is cached.
    request.user = token === undefined ? undefined : this.tokenVerifier.findCached(token);
    if (
      request.user !== undefined ||
      this.isPublic(context) ||
      this.isMetricsToken(token, context)
    ) {
      return true;
    }
    return super.canActivate(context) as Promise<boolean>;
  }

  private isPublic(context: ExecutionContext): boolean {
    const targets = [context.getHandler(), context.getClass()];
    return this.reflector.getAllAndOverride(Public, targets) === true;
  }

  /** The metrics token is checked without the database: metrics are needed most while the database is unavailable. */
  private isMetricsToken(token: string | undefined, context: ExecutionContext): boolean {
    const hash = this.config.auth.metricsTokenHash;
    if (hash === undefined || token === undefined) return false;
    if (this.reflector.get(ForMetricsToken, context.getHandler()) !== true) return false;
    return timingSafeEqual(hashAccessToken(token), Buffer.from(hash, 'hex'));
  }

  /**
   * Passport gets only the Authorization header, with one space before the token. From the whole request, the strategy
   * would also accept a token in the body or in the query, which ends up in logs, and would refuse a second space.
   */
  override getRequest(context: ExecutionContext): object {
    const request = context.switchToHttp().getRequest<Request>();
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) throw tokenMissing();
    return {
      headers: { authorization: `Bearer ${TOKEN.test(token) ? token : INVALID_TOKEN}` },
      // `ip` is undefined only when the connection is closed. Any address will do then: nobody reads the response.
      address: request.ip ?? '::',
    };
  }

  override handleRequest<User extends Caller>(
    error: unknown,
    caller: User | false,
    _info: unknown,
    context: ExecutionContext,
  ): User {
    if (error) throw error as Error;
    if (!caller) throw tokenInvalid();
    // @nestjs/passport sets the user on the object from `getRequest`, not on the request.
    context.switchToHttp().getRequest<Request>().user = caller;
    return caller;
  }
}

/**
 * The form of a token, RFC 6750 section 2.1. The strategy refuses a malformed token without calling `validate`, so it
 * would not count as a failure. The guard replaces it with `-`, which is well-formed and never valid.
 */
const TOKEN = /^[\w.~+/-]+=*$/;
const INVALID_TOKEN = '-';

/** RFC 6750 section 2.1 and RFC 9110 section 11.1: the scheme in any case, one or more spaces, the token. */
function bearerToken(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^bearer +(.+)$/i.exec(header)?.[1];
}
