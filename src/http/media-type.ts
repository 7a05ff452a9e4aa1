import type { IncomingMessage } from 'node:http';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';

/**
 * Refuses a body that is not plain UTF-8 `application/json`.
 *
 * @throws ServiceError unsupportedMediaType
 */
export function checkMediaType({ headers }: IncomingMessage): void {
  if (!isPlainJson(headers['content-type'])) {
    throw new ServiceError(
      ErrorCode.unsupportedMediaType,
      'Send the body as JSON in UTF-8, with the header Content-Type: application/json.',
    );
  }
  const encoding = headers['content-encoding'];
  if (encoding && encoding.toLowerCase() !== 'identity') {
    throw new ServiceError(
      ErrorCode.unsupportedMediaType,
      'Send the body as it is, without a Content-Encoding.',
    );
  }
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
