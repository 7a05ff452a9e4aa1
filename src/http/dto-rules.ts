import type { Type } from '@nestjs/common';
import {
  getMetadataStorage,
  ValidationTypes,
  type ValidationArguments,
  type ValidatorConstraintInterface,
} from 'class-validator';

type Dto = Record<string, unknown>;

/** What the decorators say of one member. */
interface MemberRules {
  readonly name: string;
  readonly conditions: ((dto: Dto, value: unknown) => boolean)[];
  readonly constraints: { validator: ValidatorConstraintInterface; parameters: unknown[] }[];
}

/**
 * The class-validator decorators of a DTO, read once. class-validator collects them anew for every object, and
 * prepares an error for each member: for a plant that is valid, as nearly all are, that costs ten times what
 * the checks do.
 */
export class DtoRules {
  private readonly members = new Map<string, MemberRules>();
  /** Kinds of rules that only class-validator itself knows how to apply: nested objects, groups, promises. */
  private hasOtherRules = false;

  constructor(private readonly dto: Type<object>) {
    const storage = getMetadataStorage();
    for (const rule of storage.getTargetValidationMetadatas(dto, '', false, false)) {
      const member = this.memberOf(rule.propertyName);
      if (rule.each || rule.validateIf !== undefined || rule.groups?.length > 0) {
        this.hasOtherRules = true;
      } else if (rule.type === ValidationTypes.CONDITIONAL_VALIDATION) {
        member.conditions.push(rule.constraints[0] as MemberRules['conditions'][0]);
      } else if (rule.type === ValidationTypes.CUSTOM_VALIDATION) {
        for (const { instance, async } of storage.getTargetValidatorConstraints(
          rule.constraintCls,
        )) {
          if (async) this.hasOtherRules = true;
          member.constraints.push({ validator: instance, parameters: rule.constraints });
        }
      } else {
        this.hasOtherRules = true;
      }
    }
  }

  /** @returns an instance of the DTO with those members of `value` that have a rule; all others are ignored */
  pick(value: object): object {
    const dto = new this.dto() as Dto;
    for (const name of this.members.keys()) {
      if (Object.hasOwn(value, name)) dto[name] = (value as Dto)[name];
    }
    return dto;
  }

  /** @returns true if the DTO is valid; false if it is not, or if class-validator has to be asked */
  isSurelyValid(dto: object): boolean {
    if (this.hasOtherRules) return false;
    for (const member of this.members.values()) {
      if (!isMemberValid(dto as Dto, member)) return false;
    }
    return true;
  }

  private memberOf(name: string): MemberRules {
    const member = this.members.get(name) ?? { name, conditions: [], constraints: [] };
    this.members.set(name, member);
    return member;
  }
}

function isMemberValid(dto: Dto, { name, conditions, constraints }: MemberRules): boolean {
  const value = dto[name];
  if (!conditions.every((applies) => applies(dto, value))) return true;
  return constraints.every(({ validator, parameters }) => {
    const args: ValidationArguments = {
      targetName: dto.constructor.name,
      property: name,
      object: dto,
      value,
      constraints: parameters,
    };
    return validator.validate(value, args) === true;
  });
}
