import type { Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError } from 'class-validator';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import type { JsonValue } from './exact-json.js';

/**
 * Makes a DTO of the JSON of a request. Members that the DTO does not expose are ignored.
 *
 * @throws ServiceError bodyInvalid when it does not keep the rules that the DTO writes with class-validator
 */
export function validate<Dto extends object>(value: JsonValue, type: Type<Dto>): Dto {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(type, 'it must be a JSON object');
  }
  const dto = plainToInstance(type, value, { excludeExtraneousValues: true });
  const errors = validateSync(dto, { stopAtFirstError: true, validationError: { target: false } });
  if (errors.length > 0) {
    throw invalid(type, errors.flatMap(messagesOf).join('; '));
  }
  return dto;
}

function messagesOf(error: ValidationError): string[] {
  return Object.values(error.constraints ?? {});
}

function invalid(type: Type<object>, reason: string): ServiceError {
  return new ServiceError(ErrorCode.bodyInvalid, `The body is not a ${type.name}: ${reason}.`);
}
