import { ApiProperty } from '@nestjs/swagger';
import { JsonMember } from '../../http/json-member.js';
import { IsInt64 } from './is-int64.js';
import { Plant } from './plant.js';

/** A plant as a client sends it. */
export class NewPlant extends Plant {
  @ApiProperty({
    type: 'integer',
    format: 'int64',
    description: 'Identification number of the plant',
    examples: [1649503004888048],
  })
  @JsonMember()
  @IsInt64()
  id: bigint;
}
