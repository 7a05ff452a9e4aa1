import { isUtf8 } from 'node:buffer';
import { createParamDecorator, type ExecutionContext, type Type } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ErrorCode } from '../errors/error-codes.js';
import { connectionClosed, ServiceError } from '../errors/service-error.js';
import { inSpan } from '../tracing/tracing.js';
import { JsonError, parseExactJson, type JsonValue } from './exact-json.js';
import { requestOf, responseOf } from './execution-context.js';
import { validate } from './validate.js';
import { whenClosed } from './when-closed.js';

/**
 * The JSON body of the request, without loss, as the DTO that is named: `@JsonBody(NewThing)`. It is read here,
 * behind the guard, and not by a parser in front of it: nobody without a token makes the service read a body.
 * It is validated here, and not by a pipe: see docs/decisions/0010-validation-without-a-pipe.md.
 *
 * The checks come in the order media type, size, JSON, rules of the DTO. Errors: 40001 to 40005.
 */
export function JsonBody(dto: Type<object>): ParameterDecorator {
  return ReadBody(dto);
}

const ReadBody = createParamDecorator(
  (dto: Type<object>, context: ExecutionContext): object | Promise<object> => {
    const request = requestOf(context);
    const limit = bodyLimitOf(request);
    checkMediaType(request);
    if (Number(request.headers['content-length'] ?? 0) > limit) {
      throw bodyTooLarge(limit);
    }
    const read = (body: Buffer) => validate(parseBody(body), dto);
    const body = inSpan('body', {}, () =>
      isThere(request) ? takeBody(request, limit) : readBody(request, responseOf(context), limit),
    );
    return body instanceof Promise ? body.then(read) : read(body);
  },
);

/** The setting `BODY_LIMIT`, in bytes, for `bodyLimitOf`. */
export const BODY_LIMIT_SETTING = 'body limit';

function bodyLimitOf(request: Request): number {
  return request.app.get(BODY_LIMIT_SETTING) as number;
}

function checkMediaType(request: Request): void {
  const header = request.headers['content-type'];
  if (header === undefined && !announcesBody(request)) {
    throw bodyMissing();
  }
  if (!isPlainJson(header)) {
    throw new ServiceError(
      ErrorCode.unsupportedMediaType,
      'Send the body as JSON in UTF-8, with the header Content-Type: application/json.',
    );
  }
  const encoding = request.headers['content-encoding'];
  if (encoding && encoding.toLowerCase() !== 'identity') {
    throw new ServiceError(
      ErrorCode.unsupportedMediaType,
      'Send the body as it is, without a Content-Encoding.',
    );
  }
}

/** RFC 9112 section 6.3: without either header field, a request has no body. */
function announcesBody(request: Request): boolean {
  return (
    request.headers['transfer-encoding'] !== undefined ||
    Number(request.headers['content-length'] ?? 0) !== 0
  );
}

/**
 * Whether nothing is left to wait for: small bodies come with the header. Node calls a request complete only after
 * all that its last piece sets off, this included.
 */
function isThere(request: Request): boolean {
  return request.complete || request.readableLength === Number(request.headers['content-length']);
}

function takeBody(request: Request, limit: number): Buffer {
  const length = request.readableLength;
  if (length > limit) throw bodyTooLarge(limit);
  // Not read(): it returns the first piece of those that arrived.
  return (request.read(length) as Buffer | null) ?? Buffer.alloc(0);
}

/** RFC 9110 sections 8.3.1 and 5.6.6: a media type and its parameters, a parameter being a name and a value. */
const PARAMETER =
  /[ \t]*;[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=([\w!#$%&'*+.^`|~-]+|"(?:[^"\\]|\\.)*"))?/y;
const JSON_TYPE = /application\/json/iy;

/** Whether the media type is JSON in UTF-8: anything unclear, such as two charsets, is not. */
function isPlainJson(header: string | undefined): boolean {
  if (header === 'application/json') return true;
  if (header === undefined) return false;
  JSON_TYPE.lastIndex = 0;
  if (!JSON_TYPE.test(header)) return false;
  let end = JSON_TYPE.lastIndex;
  while (end < header.length) {
    PARAMETER.lastIndex = end;
    const parameter = PARAMETER.exec(header);
    if (parameter === null) return false;
    const [, name, value] = parameter;
    if (name?.toLowerCase() === 'charset' && !/^"?utf-?8"?$/i.test(value!)) return false;
    end = PARAMETER.lastIndex;
  }
  return true;
}

/** @param limit bytes, checked while reading: the sender need not have announced how much it sends */
function readBody(request: Request, response: Response, limit: number): Promise<Buffer> {
  // RFC 9110 section 10.1.1: a client that asked may send its body now that nothing speaks against it. What
  // HTTP/1.0 asks is ignored.
  if (request.headers.expect !== undefined && request.httpVersion === '1.1') {
    response.writeContinue();
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (action: () => void) => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
      action();
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > limit) {
        request.pause();
        settle(() => reject(bodyTooLarge(limit)));
      }
    };
    const onEnd = () =>
      settle(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    const onClose = () => settle(() => reject(connectionClosed()));
    request.on('data', onData).on('end', onEnd).on('error', onClose);
    whenClosed(request, onClose);
  });
}

function parseBody(body: Buffer): JsonValue {
  if (body.length === 0) {
    throw bodyMissing();
  }
  if (!isUtf8(body)) {
    throw malformedJson('it is not valid UTF-8');
  }
  try {
    return parseExactJson(body.toString('utf8'));
  } catch (error) {
    throw error instanceof JsonError ? malformedJson(error.message) : error;
  }
}

function bodyMissing(): ServiceError {
  return new ServiceError(
    ErrorCode.bodyMissing,
    'The body is missing. Send JSON, as /docs shows it.',
  );
}

function bodyTooLarge(limit: number): ServiceError {
  return new ServiceError(ErrorCode.bodyTooLarge, `The body is larger than ${limit} bytes.`);
}

function malformedJson(reason: string): ServiceError {
  return new ServiceError(ErrorCode.malformedJson, `The body cannot be read as JSON: ${reason}.`);
}
