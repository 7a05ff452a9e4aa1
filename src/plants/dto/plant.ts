// The one declaration of the fields of a plant: rules, OpenAPI schema, columns, statements, responses and CSV are made from it.

import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { ValidateIf } from 'class-validator';
import { IsExactText, IsInt64 } from './rules.js';

const optionalFields = new Set<string>();

interface TextOptions {
  readonly description: string;
  readonly example: string;
  readonly isOptional?: boolean;
}

/** A text. Its column is a `text` of the same name, which is written in lower case in SQL, with NULL where the text is missing. */
function PlantText({ description, example, isOptional = false }: TextOptions): PropertyDecorator {
  const schema = {
    type: 'string' as const,
    required: !isOptional,
    description,
    examples: [example],
  };
  if (!isOptional) return applyDecorators(ApiProperty(schema), IsExactText());
  return applyDecorators(
    (_target: object, name: string | symbol) => void optionalFields.add(String(name)),
    ApiProperty(schema),
    // @IsOptional() would accept null.
    ValidateIf((_plant: unknown, value: unknown) => value !== undefined),
    IsExactText(),
  );
}

/** A plant in a response. */
export class Plant {
  @PlantText({ description: 'The name of the plant', example: 'Equisetum fluviatile' })
  name: string;

  @PlantText({
    description: 'Tag that specifies the type',
    example: 'Equisetum',
    isOptional: true,
  })
  tag?: string;
}

/** A plant in a request. */
export class NewPlant extends Plant {
  @ApiProperty({
    type: 'integer',
    format: 'int64',
    description: 'Identification number of the plant',
    examples: [1649503004888048],
  })
  @IsInt64()
  id: bigint;
}

/** The fields that are texts. */
export const TEXT_FIELDS = Object.keys(new Plant()) as (keyof Plant)[];

/** All fields, in the order of the columns of CSV. Each has a column of the same name in the table `plants`. */
export const PLANT_FIELDS: readonly (keyof NewPlant)[] = ['id', ...TEXT_FIELDS];

/** Whether every plant has the field. */
export function isRequired(field: string): boolean {
  return !optionalFields.has(field);
}
