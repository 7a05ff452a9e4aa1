import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiResponse } from '@nestjs/swagger';
import { ErrorCode } from '../errors/error-codes.js';
import { ErrorDto } from '../errors/error.dto.js';
import { Plant } from './dto/plant.js';

/** The responses that the document declares for `POST /plants`. */
export function CreatePlantResponses(): MethodDecorator {
  return applyDecorators(
    ApiOkResponse({ type: Plant, description: 'The plant is stored' }),
    errorResponse(400, 'The request failed', {
      bodyMissing: 'The body is missing or empty',
      unsupportedMediaType: 'The body is not plain UTF-8 application/json',
      bodyTooLarge: 'The body is too large',
      malformedJson: 'The body is not JSON',
      bodyInvalid: 'The body is not a NewPlant',
      idTaken: 'The id belongs to a different plant',
    }),
    errorResponse(401, 'The bearer token is missing or not valid', {
      tokenMissing: 'There is no bearer token',
      tokenInvalid: 'The token is not valid, or no longer valid',
    }),
    errorResponse(
      '5XX',
      'The service could not do its work; sending the same plant again is safe',
      {
        databaseUnavailable: 'The database does not respond in time',
        overloaded: 'More work is waiting than the service accepts',
        shuttingDown: 'The service is shutting down',
        issuerUnavailable: 'The identity provider does not respond',
      },
    ),
  );
}

/** @param examples a message for each error */
function errorResponse(
  status: number | '5XX',
  description: string,
  examples: { readonly [Name in keyof typeof ErrorCode]?: string },
): MethodDecorator {
  const exampleOf = ([name, message]: [string, string]) => {
    const error = ErrorCode[name as keyof typeof ErrorCode];
    return [name, { summary: `${error} ${message}`, value: { error, message } }] as const;
  };
  return ApiResponse({
    status,
    type: ErrorDto,
    description,
    examples: Object.fromEntries(Object.entries(examples).map(exampleOf)),
  });
}
