// Declares a handler as an operation of the API: for the OpenAPI document, and for metrics.

import {
  applyDecorators,
  Injectable,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
  type Type,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ApiOkResponse, ApiOperation, ApiResponse } from '@nestjs/swagger';
import type { Response } from 'express';
import { ErrorDto } from '../errors/error.dto.js';
import {
  databaseUnavailable,
  internal,
  invalidHttp,
  issuerUnavailable,
  overloaded,
  shuttingDown,
  tokenInvalid,
  tokenMissing,
  tooManyAttempts,
} from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { AdmissionGuard } from '../http/admission.guard.js';
import { headers, type HeaderName } from './headers.js';

interface OperationOptions {
  /** A name that no other operation has: generators call a function so, and metrics have it as the label `operation`. */
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** The response of status 200. */
  readonly success: { readonly type: Type; readonly description: string };
  /** Examples of the errors that the operation has beside those of every one. */
  readonly errors: readonly ServiceError[];
}

/** The errors of every operation: it takes a token, and uses the database. */
const COMMON_ERRORS: readonly ServiceError[] = [
  invalidHttp(),
  tokenMissing(),
  tokenInvalid(),
  tooManyAttempts(60),
  internal(),
  databaseUnavailable(),
  overloaded(),
  shuttingDown(),
  issuerUnavailable(),
];

/** What the document says of a status, and the header fields of its responses beside `X-Request-Id`. */
const STATUSES: Readonly<Record<number, readonly [description: string, ...HeaderName[]]>> = {
  400: ['The request failed'],
  401: ['The bearer token is missing or not valid', 'WWW-Authenticate'],
  404: ['There is nothing with this id'],
  429: ['Too many tokens from this address were not valid', 'Retry-After'],
  500: ['A fault of the service; sending the same request again is safe'],
  503: [
    'The service cannot do its work now; sending the same request again is safe',
    'Retry-After',
  ],
};

const OperationId = Reflector.createDecorator<string>();

/** Documents a handler with its responses, limits its requests in flight, and gives them the label `operation` in the metrics. */
export function Operation({ success, errors, ...about }: OperationOptions): MethodDecorator {
  const byStatus = Map.groupBy([...COMMON_ERRORS, ...errors], ({ status }) => status);
  return applyDecorators(
    UseGuards(AdmissionGuard),
    OperationId(about.operationId),
    ApiOperation(about),
    ApiOkResponse({ ...success, headers: headers('X-Request-Id') }),
    ...Array.from(byStatus, ([status, examples]) => errorResponse(status, examples)),
  );
}

function errorResponse(status: number, errors: readonly ServiceError[]): MethodDecorator {
  const about = STATUSES[status];
  if (about === undefined) throw new Error(`STATUSES says nothing of the status ${status}.`);
  const [description, ...names] = about;
  const examples = Object.fromEntries(errors.map(exampleOf));
  if (Object.keys(examples).length < errors.length) {
    throw new Error(`Two examples of the response "${description}" have the same error number.`);
  }
  const fields = headers('X-Request-Id', ...names);
  return ApiResponse({ status, type: ErrorDto, description, headers: fields, examples });
}

function exampleOf({ kind, message }: ServiceError) {
  const { title, code, when } = kind;
  return [title, { summary: `${code}: ${when}`, value: { error: code, message } }] as const;
}

/** Remembers the operation of a request for the metrics, before another guard can refuse the request. */
@Injectable()
export class OperationGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const { locals } = context.switchToHttp().getResponse<Response>();
    locals['operation'] = this.reflector.get(OperationId, context.getHandler());
    return true;
  }
}

/** @param check throws the error */
export function errorOf(check: () => unknown): ServiceError {
  try {
    check();
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('The check of an example accepts what it should refuse.');
}
