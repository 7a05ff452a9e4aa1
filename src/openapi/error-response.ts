import { ApiResponse } from '@nestjs/swagger';
import { ERROR_MEANINGS, ErrorCode, type ErrorName } from '../errors/error-codes.js';
import { ErrorDto } from '../errors/error.dto.js';
import { ServiceError } from '../errors/service-error.js';

/** @param errors the examples */
export function errorResponse(
  status: number,
  description: string,
  headers: NonNullable<Parameters<typeof ApiResponse>[0]['headers']>,
  errors: readonly ServiceError[],
): MethodDecorator {
  const examples = Object.fromEntries(errors.map(exampleOf));
  if (Object.keys(examples).length < errors.length) {
    throw new Error(`Two examples of the response "${description}" have the same error number.`);
  }
  return ApiResponse({ status, type: ErrorDto, description, headers, examples });
}

function exampleOf({ code, message }: ServiceError) {
  const names = Object.keys(ErrorCode) as ErrorName[];
  const name = names.find((it) => ErrorCode[it] === code)!;
  const summary = `${code}: ${ERROR_MEANINGS[name].when}`;
  return [name, { summary, value: { error: code, message } }] as const;
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
