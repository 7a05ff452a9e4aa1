// The parameter decorator @JsonBody: reads the body of a request, parses and validates it.

import { isUtf8 } from 'node:buffer';
import { createParamDecorator, type ExecutionContext, type Type } from '@nestjs/common';
import type { Request, Response } from 'express';
import { bodyMissing, malformedJson } from '../errors/errors.js';
import { inSpan } from '../tracing/tracing.js';
import { JsonError, parseExactJson, type JsonValue } from './exact-json.js';
import { checkMediaType } from './media-type.js';
import { announcesBody, readBody } from './read-body.js';
import { refuseNestedFields, validate } from './validate.js';

/**
 * The JSON body of the request, validated as a DTO: `@JsonBody(NewThing)`. Body parsers run before the guard; this decorator
 * runs after it, so that the service reads no body without a token. The reasons for this instead of a pipe:
 * docs/decisions/0010-validation-without-a-pipe.md.
 *
 * The order of the checks is media type, size, missing body, JSON, rules of the DTO. Errors: 40001 to 40005.
 *
 * @throws Error for a DTO with a field that is an object or an array
 */
export function JsonBody(dto: Type<object>): ParameterDecorator {
  refuseNestedFields(dto);
  return ReadJson(dto);
}

const ReadJson: (dto: Type<object>) => ParameterDecorator = createParamDecorator(
  (dto: Type<object>, context: ExecutionContext): object | Promise<object> => {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    // Without a body, a client has no reason to name a media type: the missing body is what it must know.
    if (request.headers['content-type'] === undefined && !announcesBody(request)) {
      throw bodyMissing();
    }
    checkMediaType(request);
    const body = inSpan('body', {}, () => readBody(request, http.getResponse<Response>()));
    const toDto = (bytes: Buffer) => validate(parseBody(bytes), dto);
    return body instanceof Promise ? body.then(toDto) : toDto(body);
  },
);

/** @throws ServiceError bodyMissing or malformedJson */
export function parseBody(body: Buffer): JsonValue {
  if (body.length === 0) throw bodyMissing();
  if (!isUtf8(body)) throw malformedJson('it is not valid UTF-8');
  const text = body.toString('utf8');
  try {
    // RFC 8259 section 8.1: a reader may ignore a byte order mark.
    return parseExactJson(text.startsWith('\uFEFF') ? text.slice(1) : text);
  } catch (error) {
    throw error instanceof JsonError ? malformedJson(error.message) : error;
  }
}
