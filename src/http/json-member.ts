import { applyDecorators } from '@nestjs/common';
import { Type } from 'class-transformer';

/**
 * Marks a field of a DTO that takes a member of the JSON.
 *
 * An object or array stays plain, and the rules of the DTO refuse it. Without `Type`, class-transformer would construct it
 * from the declared type of the field, or from a member `constructor` that a client sent, and fail.
 */
export function JsonMember(): PropertyDecorator {
  return applyDecorators(
    // Type reads this metadata, so it must be set before.
    Reflect.metadata('design:type', Object),
    Type(() => Object),
  );
}
