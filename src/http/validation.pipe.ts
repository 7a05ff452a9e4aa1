import { Injectable, type ArgumentMetadata, type PipeTransform, type Type } from '@nestjs/common';
import { validateSync, type ValidationError } from 'class-validator';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { DtoRules } from './dto-rules.js';

/**
 * Turns the JSON of a request into its DTO and validates it. Only members with a rule are looked at; all
 * others are ignored. Nest's own ValidationPipe would walk through the whole value first and takes null, and
 * an array of DTOs, for a DTO.
 */
@Injectable()
export class ValidationPipe implements PipeTransform {
  private readonly rules = new Map<Type<object>, DtoRules>();

  transform(value: unknown, { metatype }: ArgumentMetadata): unknown {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw invalid('the body must be a JSON object');
    }
    const rules = this.rulesOf(metatype as Type<object>);
    const dto = rules.pick(value);
    if (rules.isSurelyValid(dto)) return dto;
    const errors = validateSync(dto, {
      stopAtFirstError: true,
      validationError: { target: false },
    });
    if (errors.length > 0) {
      throw invalid(errors.flatMap(messagesOf).join('; '));
    }
    return dto;
  }

  private rulesOf(dto: Type<object>): DtoRules {
    let rules = this.rules.get(dto);
    if (rules === undefined) {
      rules = new DtoRules(dto);
      this.rules.set(dto, rules);
    }
    return rules;
  }
}

function messagesOf(error: ValidationError): string[] {
  return Object.values(error.constraints ?? {});
}

function invalid(reason: string): ServiceError {
  return new ServiceError(ErrorCode.invalidPlant, `The plant is not valid: ${reason}.`);
}
