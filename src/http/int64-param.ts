// A parameter of a path that is an id of 64 bits: `read(@Int64Param('id', …) id: bigint)`.

import { Param, type PipeTransform } from '@nestjs/common';
import { ApiParam } from '@nestjs/swagger';
import type { ServiceError } from '../errors/service-error.js';
import { parseInt64 } from './int64.js';

/**
 * Reads an id from the path, and documents it.
 *
 * @param notFound the error for a text that is no id: nothing has it
 */
export function Int64Param(
  name: string,
  about: { readonly description: string; readonly example: number },
  notFound: () => ServiceError,
): ParameterDecorator {
  const pipe: PipeTransform<string, bigint> = {
    transform(text) {
      const id = parseInt64(text);
      if (id === undefined) throw notFound();
      return id;
    },
  };
  const { description, example } = about;
  // Beside `schema`, @ApiParam drops an example silently.
  const schema = { type: 'integer', format: 'int64', examples: [example] } as const;
  return (target, method, index) => {
    Param(name, pipe)(target, method, index);
    const handler = Object.getOwnPropertyDescriptor(target, method!)!;
    ApiParam({ name, description, schema })(target, method!, handler);
  };
}
