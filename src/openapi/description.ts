import { ErrorCode } from '../errors/error-codes.js';

type ErrorName = keyof typeof ErrorCode;

/** For clients: when an error is sent, and how to react. The README has the same table. */
export const ERROR_MEANINGS: Readonly<Record<ErrorName, { when: string; remedy: string }>> = {
  badRequest: {
    when: 'malformed HTTP, or another fault of the request',
    remedy: 'correct the client',
  },
  bodyMissing: { when: 'the body is missing or empty', remedy: 'send a plant' },
  unsupportedMediaType: {
    when: 'the body is not plain UTF-8 `application/json`',
    remedy: 'set `Content-Type: application/json`, no encoding',
  },
  bodyTooLarge: { when: 'the body is larger than the limit', remedy: 'send less' },
  malformedJson: {
    when: 'not JSON: syntax, UTF-8, a repeated member, nested deeper than 512 levels',
    remedy: 'correct the JSON',
  },
  bodyInvalid: {
    when: 'not a plant; the message names every field that is wrong',
    remedy: 'correct the fields',
  },
  idTaken: { when: 'the id belongs to a different plant', remedy: 'choose another id' },
  tokenMissing: { when: 'no bearer token', remedy: 'send one' },
  tokenInvalid: { when: 'the token is not valid, or no longer valid', remedy: 'get a new one' },
  pathNotFound: {
    when: 'no such path',
    remedy: 'check case and slashes: routes are strict',
  },
  methodNotAllowed: {
    when: 'no such method on this path',
    remedy: 'use a method in the header `Allow`',
  },
  requestTimeout: { when: 'the request did not arrive in time', remedy: 'send it again' },
  expectationFailed: { when: 'an `Expect` other than `100-continue`', remedy: 'remove it' },
  tooManyAttempts: {
    when: 'too many wrong tokens from this address',
    remedy: 'repeat after `Retry-After` seconds',
  },
  headersTooLarge: {
    when: 'the header fields are too large',
    remedy: 'send fewer or shorter ones',
  },
  internal: {
    when: 'a fault of the service; details are in its log',
    remedy: 'inform the operator; repeating is safe',
  },
  databaseUnavailable: {
    when: 'the database cannot be reached or does not respond in time',
    remedy: 'repeat after `Retry-After` seconds',
  },
  overloaded: {
    when: 'more work is waiting than the service accepts',
    remedy: 'repeat after `Retry-After` seconds',
  },
  shuttingDown: { when: 'the service is shutting down', remedy: 'repeat on a new connection' },
  issuerUnavailable: {
    when: 'the identity provider does not respond, so the token cannot be judged',
    remedy: 'repeat after `Retry-After` seconds',
  },
};

/** CommonMark; tools that read it also show tables and the HTML element `details`. */
export const DESCRIPTION = `Stores plants: exactly, once, for good.

## Token

Every request needs a token: \`Authorization: Bearer <token>\`. Get one from the operator of the service, who makes it with
\`./plant-store token create NAME\`. With the embedded database, every start of the service prints a token for
development, and the token of the start before stops working.

## Exact ids

An \`id\` is an integer from -9223372036854775808 to 9223372036854775807. JavaScript numbers are exact only up to 9007199254740991: a larger id is
rounded before it is sent, and the service cannot notice. Keep ids as \`BigInt\`, and write them as
\`JSON.rawJSON(String(id))\` in \`JSON.stringify\`.

## Retries

The same plant (same id, name and tag) may be sent any number of times, and is stored once. After a time-out, a lost
connection, 429 or 503, send the same request again, never with another id. If the response has \`Retry-After\`, wait that
many seconds.

## Errors

Every response that is not a success is an \`Error\`. Branch on its number \`error\`, which never changes its meaning; its
first three digits are the HTTP status. The \`message\` is for people.

<details>
<summary>All error numbers</summary>

| error | when | what to do |
| --- | --- | --- |
${errorRows().join('\n')}

</details>`;

function errorRows(): string[] {
  return Object.entries(ERROR_MEANINGS)
    .map(([name, meaning]) => ({ code: ErrorCode[name as ErrorName], ...meaning }))
    .sort((a, b) => a.code - b.code)
    .map(({ code, when, remedy }) => `| ${code} | ${when} | ${remedy} |`);
}
