import { Reflector } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { DataSource, Repository } from 'typeorm';
import { AccessTokenEntity } from '../../src/auth/access-token.entity.js';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { BearerGuard } from '../../src/auth/bearer.guard.js';
import { BearerStrategy } from '../../src/auth/bearer.strategy.js';
import { TokenVerifierService } from '../../src/auth/token-verifier.service.js';
import { readConfig } from '../../src/config/config.js';
import { AUDIENCE, startIssuer, type Issuer } from '../setup/http/issuer.js';
import { METRICS_SETTING } from '../setup/service/metrics.js';
import { requestBytes, startReceiver, type Exchange } from '../setup/http/receiver.js';

/** A controller with one route, as a test decorates it. */
export interface Controller {
  new (): object;
  readonly prototype: { readonly handle: () => void };
}

class ClosedController {
  handle(): void {}
}

interface SentRequest {
  readonly controller?: Controller;
  readonly lines?: readonly string[];
  readonly path?: string;
}

/** The guard of the service, without the service. Its database is not open, so only tokens of the issuer are valid. */
export interface Guarded {
  readonly issuer: Issuer;
  /** A valid token of `gardener`. */
  readonly token: string;
  /** Forgets all tokens and failures. */
  reset(env?: Record<string, string>): void;
  /** Sends a request to a route. */
  send(authorization: string | undefined, request?: SentRequest): Promise<Exchange>;
  /** Runs the guard for a request. */
  check(exchange: Exchange, controller?: Controller): boolean | Promise<boolean>;
  /** Sends a request and runs the guard. @returns the caller, or the error that refuses the request */
  callerOf(authorization: string | undefined, request?: SentRequest): Promise<unknown>;
  close(): Promise<void>;
}

export async function startGuarded(): Promise<Guarded> {
  const receiver = await startReceiver({ 'trust proxy': 1 });
  const issuer = await startIssuer();
  const token = await issuer.sign();
  const logger = pino({ level: 'silent' });
  const createGuard = (env: Record<string, string> = {}) => {
    const database = new DataSource({ type: 'postgres' });
    const tokens = new AccessTokensService(new Repository(AccessTokenEntity, database.manager));
    const config = readConfig({
      OIDC_ISSUER: issuer.url,
      OIDC_AUDIENCE: AUDIENCE,
      ...METRICS_SETTING,
      AUTH_FAILURES_PER_MINUTE: '2',
      ...env,
    });
    const verifier = new TokenVerifierService(tokens, config, logger, new Registry());
    // Passport keeps the latest strategy.
    new BearerStrategy(verifier);
    return new BearerGuard(new Reflector(), verifier, config);
  };
  let guard = createGuard();

  const guarded: Guarded = {
    issuer,
    token,
    reset: (env) => {
      guard = createGuard(env);
    },
    send(authorization, { lines = [], path = '/' } = {}) {
      const header = authorization === undefined ? [] : [`Authorization: ${authorization}`];
      return receiver.send(requestBytes([...header, ...lines], '', `POST ${path} HTTP/1.1`));
    },
    check({ request, response }, controller = ClosedController) {
      const { handle } = controller.prototype;
      return guard.canActivate(new ExecutionContextHost([request, response], controller, handle));
    },
    async callerOf(authorization, sent = {}) {
      const exchange = await guarded.send(authorization, sent);
      try {
        if (!(await guarded.check(exchange, sent.controller))) throw new Error('Refused silently');
        return exchange.request.user;
      } catch (error) {
        if (exchange.request.user !== undefined)
          throw new Error('It has a caller', { cause: error });
        return error;
      }
    },
    async close() {
      await receiver.close();
      await issuer.close();
    },
  };
  return guarded;
}
