// CORS: lets pages of other origins read the responses.

import cors from 'cors';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { METHODS } from './methods.js';

/** Browsers keep the response to a preflight for at most two hours. */
const MAX_AGE_SECONDS = 7200;

/**
 * A middleware that lets pages of other origins read the responses, errors included.
 *
 * @param origins as browsers send them in `Origin`, or `*` for all
 */
export function allowOrigins(origins: readonly string[]): RequestHandler {
  const options = {
    methods: METHODS,
    allowedHeaders: ['Authorization', 'Content-Type'],
    exposedHeaders: ['Retry-After', 'X-Request-Id'],
    maxAge: MAX_AGE_SECONDS,
    // The package would also respond with 204 to preflights from origins that are not allowed.
    preflightContinue: true,
  };
  if (origins.includes('*')) return cors({ ...options, origin: '*' });
  const allow = cors({
    ...options,
    // Given a list instead of a function, the package would send other origins all header fields but Access-Control-Allow-Origin.
    origin: (origin, done) => done(null, origin !== undefined && origins.includes(origin)),
  });
  return (request, response, next) => {
    // A cache must not give a response without the header fields to an origin that is allowed.
    response.vary('Origin');
    allow(request, response, next);
  };
}

/** A middleware that responds to the preflights from allowed origins. To all others, OPTIONS is a method like any other. */
export function respondToPreflight(request: Request, response: Response, next: NextFunction): void {
  const { origin, 'access-control-request-method': method } = request.headers;
  const isPreflight = request.method === 'OPTIONS' && origin !== undefined && method !== undefined;
  if (!isPreflight || !response.hasHeader(ALLOW_ORIGIN)) return next();
  response.status(204).end();
}

/** Lets pages of all origins read a response that is no secret. */
export function allowAllOrigins(response: Response): void {
  response.set(ALLOW_ORIGIN, '*');
}

const ALLOW_ORIGIN = 'Access-Control-Allow-Origin';
