// What the OpenAPI document says of the errors of `POST /plants`. The examples are made by the code that sends them.

import { bodyTooLarge, idTaken } from '../errors/errors.js';
import type { ServiceError } from '../errors/service-error.js';
import { parseBody } from '../http/json-body.js';
import { checkMediaType } from '../http/media-type.js';
import { validate } from '../http/validate.js';
import { errorOf } from '../openapi/operation.js';
import { NewPlant } from './dto/plant.js';

export const CREATE_PLANT_ERRORS: readonly ServiceError[] = [
  errorOf(() => parseBody(Buffer.from(''))),
  errorOf(() => checkMediaType({ headers: { 'content-type': 'text/plain' } })),
  bodyTooLarge(64 * 1024),
  errorOf(() => parseBody(Buffer.from('{"id": 1, "id": 2}'))),
  errorOf(() => validate({ name: 5n }, NewPlant)),
  idTaken(1649503004888048n),
];
