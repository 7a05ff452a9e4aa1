import { applyDecorators } from '@nestjs/common';
import { ApiResponse } from '@nestjs/swagger';
import { ErrorCode } from '../errors/error-codes.js';
import { ErrorDto } from '../errors/error.dto.js';

/** The answers other than success that the document declares for an operation. */
export function ApiErrorResponses(): MethodDecorator {
  return applyDecorators(
    ApiResponse({
      status: 400,
      type: ErrorDto,
      description: 'The request failed',
      examples: {
        bodyMissing: example(ErrorCode.bodyMissing, 'The body is missing or empty'),
        unsupportedMediaType: example(
          ErrorCode.unsupportedMediaType,
          'The body is not plain UTF-8 application/json',
        ),
        bodyTooLarge: example(ErrorCode.bodyTooLarge, 'The body is too large'),
        malformedJson: example(ErrorCode.malformedJson, 'The body is not JSON'),
        invalidPlant: example(ErrorCode.invalidPlant, 'The body is not a NewPlant'),
        idTaken: example(ErrorCode.idTaken, 'The id belongs to a different plant'),
      },
    }),
    ApiResponse({
      status: 401,
      type: ErrorDto,
      description: 'The bearer token is missing or not valid',
      examples: {
        tokenMissing: example(ErrorCode.tokenMissing, 'There is no bearer token'),
        tokenInvalid: example(ErrorCode.tokenInvalid, 'The token is not, or no longer, valid'),
      },
    }),
    ApiResponse({
      status: '5XX',
      type: ErrorDto,
      description: 'The service could not do its work; sending the same plant again is safe',
      examples: {
        databaseUnavailable: example(
          ErrorCode.databaseUnavailable,
          'The database does not answer in time',
        ),
        overloaded: example(ErrorCode.overloaded, 'More work is waiting than the service accepts'),
        shuttingDown: example(ErrorCode.shuttingDown, 'The service is shutting down'),
        issuerUnavailable: example(
          ErrorCode.issuerUnavailable,
          'The identity provider does not answer',
        ),
      },
    }),
  );
}

function example(error: ErrorCode, message: string) {
  return { summary: `${error} ${message}`, value: { error, message } };
}
