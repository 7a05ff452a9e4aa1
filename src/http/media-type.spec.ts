import { describe, expect, it } from '@jest/globals';
import { ServiceError } from '../errors/service-error.js';
import { checkMediaType } from './media-type.js';

function refusalOf(headers: Parameters<typeof checkMediaType>[0]['headers']): unknown {
  try {
    checkMediaType({ headers });
    return undefined;
  } catch (error) {
    return error;
  }
}

function expectRefused(headers: Parameters<typeof refusalOf>[0], message: string) {
  const error = refusalOf(headers);
  expect(error).toBeInstanceOf(ServiceError);
  expect(error).toMatchObject({ code: 40002, message });
}

describe('Content-Type', () => {
  it.each([
    'application/json',
    'APPLICATION/Json',
    'application/json;charset=utf-8',
    'application/json; charset=UTF-8',
    'application/json; CharSet=Utf8',
    'application/json; charset="utf-8"',
    'application/json; charset="UTF8"',
    'application/json \t;\t charset=utf-8',
    'application/json; charset=utf-8; charset=utf-8',
    'application/json; profile=x; charset=utf-8; v=1',
    'application/json; profile="a; charset=latin1"',
    'application/json; profile="a\\"; charset=latin1"',
    'application/json; profile=""',
    "application/json; !#$%&'*+.^`|~-=1",
    'application/json; charsets=latin1',
    'application/json;',
    'application/json; ; ;charset=utf-8',
  ])('%s is JSON in UTF-8', (type) => {
    expect(refusalOf({ 'content-type': type })).toBeUndefined();
  });

  it.each([
    [undefined, 'is missing'],
    ['', 'is empty'],
    ['text/plain', 'is another type'],
    ['text/json', 'is another type'],
    ['json', 'is another type'],
    ['application/xml', 'is another type'],
    ['application/x-www-form-urlencoded', 'is another type'],
    ['multipart/form-data; boundary=x', 'is another type'],
    ['application/jso', 'is another type'],
    ['application/jsonp', 'is another type'],
    ['application/json5; charset=utf-8', 'is another type'],
    ['application/problem+json', 'is another type'],
    ['xapplication/json', 'is another type'],
    ['application/*', 'is no type but a range'],
    ['*/*', 'is no type but a range'],
    [' application/json', 'begins with a space, which no HTTP parser leaves there'],
    ['application/json, application/json', 'is a list'],
    ['application/json; charset=latin1', 'is another charset'],
    ['application/json; CHARSET="utf-16"', 'is another charset'],
    ['application/json; charset=utf-8x', 'is another charset'],
    ['application/json; charset=utf-', 'is another charset'],
    ["application/json; charset='utf-8'", 'has single quotes, which are a part of the value'],
    ['application/json; charset=utf-8; charset=latin1', 'is another charset the second time'],
    ['application/json; x=1; charset=latin1', 'is another charset after a parameter'],
    ['application/json; charset="utf-8', 'has a quote that does not end'],
    ['application/json; x="a"b"', 'has a quote too many'],
    ['application/json; charset=', 'has no value'],
    ['application/json; charset', 'has no value'],
    ['application/json; =x', 'has no name'],
    ['application/json; x = 1', 'has spaces around ='],
    ['application/json; a b=1', 'has a space in a name'],
    ['application/json x', 'has no semicolon'],
    ['application/json charset=utf-8', 'has no semicolon'],
    ['application/json; x=1 y=2', 'has no semicolon'],
  ])('%j is refused, because it %s', (type, _reason) => {
    expectRefused(
      type === undefined ? {} : { 'content-type': type },
      'Send the body as JSON in UTF-8, with the header Content-Type: application/json.',
    );
  });
});

describe('Content-Encoding', () => {
  const withEncoding = (encoding: string) => ({
    'content-type': 'application/json',
    'content-encoding': encoding,
  });

  it.each(['identity', 'Identity', 'IDENTITY', ''])('%j leaves the body as it is', (encoding) => {
    expect(refusalOf(withEncoding(encoding))).toBeUndefined();
  });

  it.each(['gzip', 'br', 'deflate', 'x-identity', 'identity, gzip', 'identity2'])(
    '%s is refused',
    (encoding) => {
      expectRefused(withEncoding(encoding), 'Send the body as it is, without a Content-Encoding.');
    },
  );
});
