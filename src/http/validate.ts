import type { Type } from '@nestjs/common';
import { validateSync, type ValidationError } from 'class-validator';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { DtoRules } from './dto-rules.js';
import type { JsonValue } from './exact-json.js';

const rulesOfDtos = new Map<Type<object>, DtoRules>();

/**
 * Makes a DTO of the JSON of a request. Only members with a rule are looked at; all others are ignored.
 *
 * @throws ServiceError invalidPlant when it does not keep the rules that the DTO writes with class-validator
 */
export function validate<Dto extends object>(value: JsonValue, type: Type<Dto>): Dto {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid('the body must be a JSON object');
  }
  const rules = rulesOf(type);
  const dto = rules.pick(value) as Dto;
  if (rules.isSurelyValid(dto)) return dto;
  const errors = validateSync(dto, { stopAtFirstError: true, validationError: { target: false } });
  if (errors.length > 0) {
    throw invalid(errors.flatMap(messagesOf).join('; '));
  }
  return dto;
}

function rulesOf(type: Type<object>): DtoRules {
  let rules = rulesOfDtos.get(type);
  if (rules === undefined) {
    rules = new DtoRules(type);
    rulesOfDtos.set(type, rules);
  }
  return rules;
}

function messagesOf(error: ValidationError): string[] {
  return Object.values(error.constraints ?? {});
}

function invalid(reason: string): ServiceError {
  return new ServiceError(ErrorCode.invalidPlant, `The plant is not valid: ${reason}.`);
}
