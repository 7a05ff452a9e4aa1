import { applyDecorators } from '@nestjs/common';
import { Expose, Type } from 'class-transformer';

/**
 * Marks a property of a DTO as a member of the JSON; all other members are ignored.
 *
 * Objects and arrays stay plain, for the rules of the DTO to refuse. class-transformer would construct them from the
 * declared type of the property, or from a member `constructor` that a client sent, and fail.
 */
export function JsonMember(): PropertyDecorator {
  return applyDecorators(
    Expose(),
    // Before Type, which reads it.
    Reflect.metadata('design:type', Object),
    Type(() => Object),
  );
}
