// Refuses a body that is not plain JSON in UTF-8.

import type { IncomingMessage } from 'node:http';
import { unsupportedMediaType } from '../errors/errors.js';

/**
 * Refuses a body that is not plain UTF-8 `application/json`.
 *
 * @throws ServiceError unsupportedMediaType
 */
export function checkMediaType({ headers }: Pick<IncomingMessage, 'headers'>): void {
  if (!JSON_IN_UTF8.test(headers['content-type'] ?? '')) {
    throw unsupportedMediaType(
      'Send the body as JSON in UTF-8, with the header Content-Type: application/json.',
    );
  }
  const encoding = headers['content-encoding'];
  if (encoding && encoding.toLowerCase() !== 'identity') {
    throw unsupportedMediaType('Send the body as it is, without a Content-Encoding.');
  }
}

/** RFC 9110 section 5.6.6: a parameter is a name and a value, which is a token or a quoted string. */
const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const VALUE = `(?:${TOKEN}|"(?:[^"\\\\]|\\\\.)*")`;
const PARAMETER = `(?:charset=(?:utf-?8|"utf-?8")|(?!charset=)${TOKEN}=${VALUE})`;

/** RFC 9110 section 8.3.1: a media type with any number of parameters, which may be empty. */
const JSON_IN_UTF8 = new RegExp(`^application/json(?:[ \\t]*;(?:[ \\t]*${PARAMETER})?)*$`, 'i');
