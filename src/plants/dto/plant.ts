import { ApiProperty } from '@nestjs/swagger';
import { ValidateIf } from 'class-validator';
import { JsonMember } from '../../http/json-member.js';
import { IsExactText } from './is-exact-text.js';

/** A plant as a client gets it back. */
export class Plant {
  @ApiProperty({
    type: 'string',
    description: 'The name of the plant',
    examples: ['Equisetum fluviatile'],
  })
  @JsonMember()
  @IsExactText()
  name: string;

  // Not @IsOptional(): that would let null through.
  @ApiProperty({
    type: 'string',
    required: false,
    description: 'Tag that specifies the type',
    examples: ['Equisetum'],
  })
  @ValidateIf((plant: Plant) => plant.tag !== undefined)
  @JsonMember()
  @IsExactText()
  tag?: string;
}
