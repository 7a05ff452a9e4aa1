import { applyDecorators } from '@nestjs/common';
import { Expose, Type } from 'class-transformer';

/**
 * Marks a property of a DTO as a member of the JSON; all other members are ignored.
 *
 * An object or array stays plain, and the rules of the DTO refuse it. Without `Type`, class-transformer would construct it
 * from the declared type of the property, or from a member `constructor` that a client sent, and fail.
 */
export function JsonMember(): PropertyDecorator {
  return applyDecorators(
    Expose(),
    // Type reads this metadata, so it must be set before.
    Reflect.metadata('design:type', Object),
    Type(() => Object),
  );
}
