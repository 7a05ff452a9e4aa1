import { ApiProperty, ApiSchema } from '@nestjs/swagger';

/** The body of every response that is not a success. */
@ApiSchema({ name: 'Error' })
export class ErrorDto {
  @ApiProperty({ type: 'integer', format: 'int32', description: 'Numeric error value' })
  error: number;

  @ApiProperty({ type: 'string', description: 'Error text' })
  message: string;
}
