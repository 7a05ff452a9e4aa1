import { applyDecorators } from '@nestjs/common';
import { ApiResponse } from '@nestjs/swagger';
import { ErrorDto } from '../errors/error.dto.js';

/** The answers other than success that the document declares for an operation. */
export function ApiErrorResponses(): MethodDecorator {
  return applyDecorators(
    ApiResponse({ status: 400, type: ErrorDto, description: 'The request failed' }),
    ApiResponse({ status: 401, type: ErrorDto, description: 'No valid bearer token' }),
    ApiResponse({
      status: '5XX',
      type: ErrorDto,
      description: 'The service could not do its work; sending the same plant again is safe',
    }),
  );
}
