import { ERRORS } from '../errors/errors.js';
import type { ApiDescription } from '../openapi/document.js';
import { NewPlant } from './dto/plant.js';

/** CommonMark; tools that read it also show tables and the HTML element `details`. */
const DESCRIPTION = `Stores plants: exactly, once, for good.

## Token

Every request needs a token: \`Authorization: Bearer <token>\`. Get one from the operator of the service, who makes it with
\`./plant-store token create NAME\`. With the embedded database, the service prints a token for development at
every start. It stays the same until \`./plant-store token rotate development\` replaces it.

## Exact ids

An \`id\` is an integer from -9223372036854775808 to 9223372036854775807. JavaScript numbers are exact only up to 9007199254740991: a larger id is
rounded before it is sent, and the service cannot notice. Keep ids as \`BigInt\`, and write them as
\`JSON.rawJSON(String(id))\` (Node 22, browsers of 2025) in \`JSON.stringify\`.

## Retries

The same plant, with the same fields, may be sent any number of times, and is stored once. After a timeout, a lost
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

export const API_DESCRIPTION: ApiDescription = {
  title: 'OpenAPI Plant Store',
  description: DESCRIPTION,
  tags: [{ name: 'plants', description: 'Plants, each with an id that the client chooses' }],
  subclasses: [NewPlant],
};

function errorRows(): string[] {
  return ERRORS.map(({ code, when, remedy }) => `| ${code} | ${when} | ${remedy} |`);
}
