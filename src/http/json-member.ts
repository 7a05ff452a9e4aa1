import { applyDecorators } from '@nestjs/common';
import { Type } from 'class-transformer';

/**
 * Marks a field of a DTO that takes a member of the JSON.
 *
 * A client may send an object or an array instead of a string: it stays plain, and the rules of the DTO refuse it. Without
 * `Type`, class-transformer would construct it from the declared type of the field, or from a member `constructor`.
 */
export function JsonMember(): PropertyDecorator {
  return applyDecorators(
    // `Type` reads this metadata when it is applied, so it comes first.
    Reflect.metadata('design:type', Object),
    Type(() => Object),
  );
}
