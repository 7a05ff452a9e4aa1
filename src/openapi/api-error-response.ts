import { ApiResponse } from '@nestjs/swagger';
import { ErrorDto } from '../errors/error.dto.js';
import type { ErrorCode } from '../errors/error-codes.js';

/**
 * Declares a response other than success in the document.
 *
 * @param status of HTTP, or a range such as `5XX`
 * @param examples by name: the number of an error, and what it means
 */
export function ApiErrorResponse(
  status: number | '5XX',
  description: string,
  examples: Readonly<Record<string, readonly [ErrorCode, string]>>,
): MethodDecorator {
  return ApiResponse({
    status,
    type: ErrorDto,
    description,
    examples: Object.fromEntries(
      Object.entries(examples).map(([name, [error, message]]) => [
        name,
        { summary: `${error} ${message}`, value: { error, message } },
      ]),
    ),
  });
}
