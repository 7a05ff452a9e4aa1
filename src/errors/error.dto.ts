import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { ErrorCode } from './error-codes.js';

/** The body of every response that is not a success. */
@ApiSchema({ name: 'Error' })
export class ErrorDto {
  @ApiProperty({ type: 'integer', format: 'int32', description: 'Numeric error value' })
  error: ErrorCode;

  @ApiProperty({ type: 'string', description: 'Error text' })
  message: string;
}
