import type { OpenAPIObject } from '@nestjs/swagger';

type Header = NonNullable<NonNullable<OpenAPIObject['components']>['headers']>[string];

/** The header fields of responses that clients act on. */
export const HEADERS = {
  'X-Request-Id': {
    description:
      'Identifies the request in the log of the service: the id that the client sent in this field, or a new one',
    schema: { type: 'string' },
  },
  'WWW-Authenticate': {
    description: '`Bearer`, with `error="invalid_token"` if a token was sent',
    schema: { type: 'string' },
  },
  'Retry-After': {
    description: 'Seconds to wait before sending the request again; not sent with 50302',
    schema: { type: 'integer' },
  },
} as const satisfies Record<string, Header>;

export type HeaderName = keyof typeof HEADERS;

/** References to HEADERS, for a response. */
export function headers(...names: readonly HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
