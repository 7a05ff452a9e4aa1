import { ApiProperty } from '@nestjs/swagger';
import { ValidateIf } from 'class-validator';
import { IsExactText, IsInt64 } from './rules.js';

/** A plant in a response. */
export class Plant {
  @ApiProperty({
    type: 'string',
    description: 'The name of the plant',
    examples: ['Equisetum fluviatile'],
  })
  @IsExactText()
  name: string;

  // @IsOptional() would accept null.
  @ApiProperty({
    type: 'string',
    required: false,
    description: 'Tag that specifies the type',
    examples: ['Equisetum'],
  })
  @ValidateIf((plant: Plant) => plant.tag !== undefined)
  @IsExactText()
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
