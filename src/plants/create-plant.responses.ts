import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiResponse } from '@nestjs/swagger';
import { databaseUnavailable } from '../database/run-statement.js';
import { ERROR_MEANINGS, ErrorCode, type ErrorName } from '../errors/error-codes.js';
import { ErrorDto } from '../errors/error.dto.js';
import {
  internal,
  invalidHttp,
  issuerUnavailable,
  overloaded,
  ServiceError,
  shuttingDown,
  tokenInvalid,
  tokenMissing,
  TooManyAttemptsError,
} from '../errors/service-error.js';
import { parseBody } from '../http/json-body.js';
import { checkMediaType } from '../http/media-type.js';
import { bodyTooLarge } from '../http/read-body.js';
import { validate } from '../http/validate.js';
import { headers } from '../openapi/headers.js';
import { NewPlant, Plant } from './dto/plant.js';
import { idTaken } from './plants.service.js';

/** The responses that the document declares for `POST /plants`. Their examples are made by the code that sends them. */
export function CreatePlantResponses(): MethodDecorator {
  return applyDecorators(
    ApiOkResponse({
      type: Plant,
      description: 'The plant is stored',
      headers: headers('X-Request-Id'),
    }),
    errorResponse(400, 'The request failed', headers('X-Request-Id'), [
      invalidHttp(),
      errorOf(() => parseBody(Buffer.from(''))),
      errorOf(() => checkMediaType({ headers: { 'content-type': 'text/plain' } })),
      bodyTooLarge(64 * 1024),
      errorOf(() => parseBody(Buffer.from('{"id": 1, "id": 2}'))),
      errorOf(() => validate({ name: 5n }, NewPlant)),
      idTaken(1649503004888048n),
    ]),
    errorResponse(
      401,
      'The bearer token is missing or not valid',
      headers('X-Request-Id', 'WWW-Authenticate'),
      [tokenMissing(), tokenInvalid()],
    ),
    errorResponse(
      429,
      'Too many tokens from this address were not valid',
      headers('X-Request-Id', 'Retry-After'),
      [new TooManyAttemptsError(60)],
    ),
    errorResponse(
      500,
      'A fault of the service; sending the same plant again is safe',
      headers('X-Request-Id'),
      [internal()],
    ),
    errorResponse(
      503,
      'The service cannot do its work now; sending the same plant again is safe',
      headers('X-Request-Id', 'Retry-After'),
      [databaseUnavailable(), overloaded(), shuttingDown(), issuerUnavailable()],
    ),
    errorResponse(
      '5XX',
      'Any failure of the service, such as 500 and 503; sending the same plant again is safe',
      headers('X-Request-Id'),
      [internal(), databaseUnavailable()],
    ),
  );
}

function errorResponse(
  status: number | '5XX',
  description: string,
  headers: NonNullable<Parameters<typeof ApiResponse>[0]['headers']>,
  errors: readonly ServiceError[],
): MethodDecorator {
  return ApiResponse({
    status,
    type: ErrorDto,
    description,
    headers,
    examples: Object.fromEntries(errors.map(exampleOf)),
  });
}

function exampleOf({ code, message }: ServiceError) {
  const names = Object.keys(ErrorCode) as ErrorName[];
  const name = names.find((it) => ErrorCode[it] === code)!;
  const summary = `${code}: ${ERROR_MEANINGS[name].when}`;
  return [name, { summary, value: { error: code, message } }] as const;
}

/** @param check throws the error */
function errorOf(check: () => unknown): ServiceError {
  try {
    check();
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('The check of an example accepts what it should refuse.');
}
