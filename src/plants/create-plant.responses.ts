import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import { parseBody } from '../http/json-body.js';
import { checkMediaType } from '../http/media-type.js';
import { bodyTooLarge } from '../http/read-body.js';
import { validate } from '../http/validate.js';
import { errorOf } from '../openapi/error-response.js';
import { headers } from '../openapi/headers.js';
import { CommonResponses } from './common.responses.js';
import { NewPlant, Plant } from './dto/plant.js';
import { idTaken } from './store-plants.js';

/** The responses that the OpenAPI document declares for `POST /plants`. Their examples are made by the code that sends them. */
export function CreatePlantResponses(): MethodDecorator {
  return applyDecorators(
    ApiOkResponse({
      type: Plant,
      description: 'The plant is stored',
      headers: headers('X-Request-Id'),
    }),
    CommonResponses(
      errorOf(() => parseBody(Buffer.from(''))),
      errorOf(() => checkMediaType({ headers: { 'content-type': 'text/plain' } })),
      bodyTooLarge(64 * 1024),
      errorOf(() => parseBody(Buffer.from('{"id": 1, "id": 2}'))),
      errorOf(() => validate({ name: 5n }, NewPlant)),
      idTaken(1649503004888048n),
    ),
  );
}
