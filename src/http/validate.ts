// Validates JSON as a DTO; the error names every field that is wrong, and why.

import type { Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { bodyInvalid } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import type { JsonValue } from './exact-json.js';

/**
 * Converts the JSON of a request to a DTO. Fields that the DTO does not have are ignored.
 *
 * @throws ServiceError bodyInvalid when the value breaks the class-validator rules of the DTO
 */
export function validate<Dto extends object>(value: JsonValue, type: Type<Dto>): Dto {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(type, 'it must be a JSON object');
  }
  const dto = plainToInstance(type, membersOf(value, type), { ignoreDecorators: true });
  const errors = validateSync(dto, { stopAtFirstError: true });
  if (errors.length > 0) {
    const reasons = errors.flatMap(({ constraints = {} }) => Object.values(constraints));
    throw invalid(type, reasons.join('; '));
  }
  return dto;
}

/**
 * The fields that the DTO declares. class-transformer could select them by decorators
 * (`excludeExtraneousValues`), which takes a tenth of a request's processor time.
 */
function membersOf(value: { [name: string]: JsonValue }, type: Type<object>): object {
  const fields: { [name: string]: JsonValue | undefined } = {};
  for (const name of Object.keys(new type())) fields[name] = emptied(value[name]);
  return fields;
}

/**
 * An object or an array without its contents. No field of a DTO takes one, so the rules need to see only what it is.
 * class-transformer would walk through it, and call what a client names `constructor`.
 */
function emptied(value: JsonValue | undefined): JsonValue | undefined {
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? [] : {};
}

const FLAT_TYPES: readonly unknown[] = [String, Number, BigInt, Boolean];

/** @throws Error for a DTO with a field that is an object or an array, which `validate` would empty */
export function refuseNestedFields(type: Type<object>): void {
  for (const name of Object.keys(new type())) {
    if (FLAT_TYPES.includes(Reflect.getMetadata('design:type', type.prototype as object, name)))
      continue;
    throw new Error(
      `${type.name}.${name} must be a string, a number, a bigint or a boolean: src/http/validate.ts reads no objects and arrays yet`,
    );
  }
}

function invalid(type: Type<object>, reason: string): ServiceError {
  return bodyInvalid(`The body is not a ${type.name}: ${reason}.`);
}
