import { timingSafeEqual } from 'node:crypto';
import { Inject, Injectable, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { AuthGuard } from '@nestjs/passport';
import { CONFIG, type Config } from '../config/config.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { requestOf } from '../http/execution-context.js';
import type { Caller } from './caller.js';
import { hashAccessToken } from './access-token.js';
import { IS_FOR_METRICS_TOKEN } from './metrics-token.decorator.js';
import { IS_PUBLIC } from './public.decorator.js';
import { TokenVerifierService } from './token-verifier.service.js';

/** Lets a request in if its route is public or its Authorization header carries a valid bearer token. */
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
    if (this.isRemembered(context) || this.isPublic(context) || this.isMetricsReader(context)) {
      return true;
    }
    return super.canActivate(context) as Promise<boolean>;
  }

  private isPublic(context: ExecutionContext): boolean {
    const targets = [context.getHandler(), context.getClass()];
    return this.reflector.getAllAndOverride<boolean | undefined>(IS_PUBLIC, targets) === true;
  }

  /** Whether Passport has judged this token a moment ago. */
  private isRemembered(context: ExecutionContext): boolean {
    const request = requestOf(context);
    const token = bearerToken(request.headers.authorization);
    request.user = token === undefined ? undefined : this.tokenVerifier.recall(token);
    return request.user !== undefined;
  }

  /** Whether this is the token for metrics, at their route: they are needed most while the database, which knows all other tokens, is away. */
  private isMetricsReader(context: ExecutionContext): boolean {
    const hash = this.config.auth.metricsTokenHash;
    const isOpen = this.reflector.get<boolean | undefined>(
      IS_FOR_METRICS_TOKEN,
      context.getHandler(),
    );
    if (hash === undefined || isOpen !== true) return false;
    const request = requestOf(context);
    const token = bearerToken(request.headers.authorization);
    return token !== undefined && timingSafeEqual(hashAccessToken(token), Buffer.from(hash, 'hex'));
  }

  /**
   * What Passport gets to see. The strategy would also take a token from the query and the body, where it
   * ends up in logs and histories, and knows no second space: it is given the header alone, in its
   * plainest form.
   */
  override getRequest(context: ExecutionContext): object {
    const request = requestOf(context);
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) {
      throw new ServiceError(
        ErrorCode.tokenMissing,
        'A bearer token is needed: send the header Authorization: Bearer <token>.',
      );
    }
    // A connection that is gone has no address, and its response is not read.
    return {
      headers: { authorization: `Bearer ${TOKEN.test(token) ? token : NO_TOKEN}` },
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
    if (!caller) {
      throw new ServiceError(
        ErrorCode.tokenInvalid,
        'The bearer token is not valid, or no longer.',
      );
    }
    // Passport would leave it on what it got to see.
    requestOf(context).user = caller;
    return caller;
  }
}

/** RFC 6750 section 2.1. The strategy refuses any other token by itself; that token must be judged and counted, too. */
const TOKEN = /^[\w.~+/-]+=*$/;
const NO_TOKEN = '-';

/** RFC 6750 section 2.1 and RFC 9110 section 11.1: the scheme in any case, one or more spaces, the token. */
function bearerToken(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^bearer +(.+)$/i.exec(header)?.[1];
}
