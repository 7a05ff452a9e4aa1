import { describe, expect, it } from '@jest/globals';
import { checkMediaType } from './media-type.js';

const check = (type: string | undefined, encoding?: string) => () =>
  checkMediaType({
    headers: {
      ...(type !== undefined && { 'content-type': type }),
      ...(encoding !== undefined && { 'content-encoding': encoding }),
    },
  });

const refused = (message: string) => expect.objectContaining({ code: 40002, message });

describe('Content-Type', () => {
  it.each([
    'application/json',
    'APPLICATION/Json; CharSet=Utf8',
    'application/json; charset="utf-8"',
    'application/json \t;\t charset=utf-8',
    'application/json; profile=x; charset=utf-8; charset=UTF-8',
    'application/json; profile="a\\"; charset=latin1"',
    'application/json; profile=""',
    "application/json; !#$%&'*+.^`|~-=1",
    'application/json; charsets=latin1',
    'application/json; ; ;',
  ])('%s is JSON in UTF-8', (type) => {
    expect(check(type)).not.toThrow();
  });

  it.each([
    [undefined, 'is missing'],
    ['', 'is empty'],
    ['text/plain', 'is another type'],
    ['application/jsonp', 'begins like the type'],
    ['xapplication/json', 'ends like the type'],
    ['application/problem+json', 'only has the syntax of JSON'],
    ['application/*', 'is a range'],
    ['application/json, application/json', 'is a list'],
    ['application/json; charset=latin1', 'is another charset'],
    ['application/json; charset=utf-8x', 'begins like the charset'],
    ["application/json; charset='utf-8'", 'has single quotes, which are a part of the value'],
    ['application/json; charset=utf-8; charset=latin1', 'is another charset the second time'],
    ['application/json; charset="utf-8', 'has a quote that does not end'],
    ['application/json; x="a"b"', 'has a quote too many'],
    ['application/json; charset=', 'has a parameter without a value'],
    ['application/json; charset', 'has a parameter without ='],
    ['application/json; =x', 'has a parameter without a name'],
    ['application/json; x = 1', 'has spaces around ='],
    ['application/json charset=utf-8', 'has no semicolon after the type'],
    ['application/json; x=1 y=2', 'has no semicolon between parameters'],
  ])('%j is refused, because it %s', (type, _reason) => {
    expect(check(type)).toThrow(
      refused('Send the body as JSON in UTF-8, with the header Content-Type: application/json.'),
    );
  });
});

describe('Content-Encoding', () => {
  it.each(['identity', 'IDENTITY', ''])('%j leaves the body as it is', (encoding) => {
    expect(check('application/json', encoding)).not.toThrow();
  });

  it.each(['gzip', 'x-identity', 'identity, gzip'])('%s is refused', (encoding) => {
    expect(check('application/json', encoding)).toThrow(
      refused('Send the body as it is, without a Content-Encoding.'),
    );
  });
});
