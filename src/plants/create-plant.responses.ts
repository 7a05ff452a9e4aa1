import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import { ErrorCode } from '../errors/error-codes.js';
import { ApiErrorResponse } from '../openapi/api-error-response.js';
import { Plant } from './dto/plant.js';

/** The responses that the document declares for `POST /plants`. */
export function CreatePlantResponses(): MethodDecorator {
  return applyDecorators(
    ApiOkResponse({ type: Plant, description: 'The plant is stored' }),
    ApiErrorResponse(400, 'The request failed', {
      bodyMissing: [ErrorCode.bodyMissing, 'The body is missing or empty'],
      unsupportedMediaType: [
        ErrorCode.unsupportedMediaType,
        'The body is not plain UTF-8 application/json',
      ],
      bodyTooLarge: [ErrorCode.bodyTooLarge, 'The body is too large'],
      malformedJson: [ErrorCode.malformedJson, 'The body is not JSON'],
      invalidPlant: [ErrorCode.bodyInvalid, 'The body is not a NewPlant'],
      idTaken: [ErrorCode.idTaken, 'The id belongs to a different plant'],
    }),
    ApiErrorResponse(401, 'The bearer token is missing or not valid', {
      tokenMissing: [ErrorCode.tokenMissing, 'There is no bearer token'],
      tokenInvalid: [ErrorCode.tokenInvalid, 'The token is not, or no longer, valid'],
    }),
    ApiErrorResponse(
      '5XX',
      'The service could not do its work; sending the same plant again is safe',
      {
        databaseUnavailable: [
          ErrorCode.databaseUnavailable,
          'The database does not answer in time',
        ],
        overloaded: [ErrorCode.overloaded, 'More work is waiting than the service accepts'],
        shuttingDown: [ErrorCode.shuttingDown, 'The service is shutting down'],
        issuerUnavailable: [ErrorCode.issuerUnavailable, 'The identity provider does not answer'],
      },
    ),
  );
}
