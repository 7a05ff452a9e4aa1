import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Ajv2020, ValidateFunction } from 'ajv/dist/2020.js';
import { ROOT } from '../process/command.js';

interface Response {
  readonly headers: Record<string, { $ref: string }>;
  readonly content: Record<string, unknown>;
}

interface Document {
  readonly info: { readonly description: string };
  readonly paths: Record<string, Record<string, { responses: Record<string, Response> }>>;
}

/** A response that a test received. */
export interface ReceivedResponse {
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly body: string;
  /** Such as `POST /plants`; undefined if what was sent is no request. */
  readonly request?: string;
}

/** The service sent a response, and it is not as the OpenAPI document says. */
export class UndocumentedError extends Error {}

/** The description of the header field excepts it. */
const WITHOUT_RETRY_AFTER = 50302;

const document = JSON.parse(readFileSync(join(ROOT, 'openapi.json'), 'utf8')) as Document;

/** The responses of all operations. */
const describedResponses = Object.entries(document.paths).flatMap(([path, operations]) =>
  Object.entries(operations).flatMap(([method, { responses }]) =>
    Object.entries(responses).map(([status, { headers, content }]) => ({
      path: new RegExp(`^${path.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`),
      method: method.toUpperCase(),
      status: new RegExp(`^${status}$`),
      headers,
      content,
      schemas: `#/paths/${encodeURIComponent(path.replaceAll('/', '~1'))}/${method}/responses/${status}/content`,
    })),
  ),
);

/** @param request such as `POST /plants`, whose method the OpenAPI document may lack */
export function isDocumented(request: string): boolean {
  const [method, path = ''] = partsOf(request);
  return describedResponses.some((it) => it.method === method && it.path.test(path));
}

const partsOf = (request: string) => request.split(/[ ?]/) as [method: string, path?: string];

/** An error that no operation describes has the schema of the others. */
const ONLY_IN_TABLE = {
  ...describedResponses.find((it) => it.status.test('400'))!,
  headers: {} as Response['headers'],
};

/** The first column of the table in the description. */
const numbers = new Set(
  [...document.info.description.matchAll(/^\| (\d{5}) \|/gm)].map(([, number]) => Number(number)),
);

let validator: Promise<Ajv2020> | undefined;

/**
 * Checks a response against openapi.json, with a validator for JSON Schema 2020-12, the dialect of OpenAPI 3.1: its
 * status, its header fields, its content type and its body. The table in the description contains every error, also those
 * of paths that are not in the OpenAPI document: their bodies must be as in the schema `Error`.
 *
 * @throws UndocumentedError that names each difference
 */
export async function expectDocumented(response: ReceivedResponse): Promise<void> {
  const problems = await problemsOf(response);
  if (problems.length === 0) return;
  const { request = 'a request', status, body } = response;
  throw new UndocumentedError(
    `The response ${status} to ${request} is not as openapi.json says: ${problems.join('; ')}. It is: ${body.slice(0, 500)}`,
  );
}

async function problemsOf(response: ReceivedResponse): Promise<string[]> {
  const { request = '', status } = response;
  const isError = status >= 400;
  const [method, path = ''] = partsOf(request);
  const ofPath = describedResponses.filter((it) => it.path.test(path));
  // Not in the OpenAPI document: 100 Continue, success on other paths, a preflight, and HEAD, whose response has no body.
  const isPreflight = method === 'OPTIONS' && status === 204;
  if (method === 'HEAD' || isPreflight || !(isError || (status >= 200 && ofPath.length > 0)))
    return [];
  const ofOperation = ofPath.filter((it) => it.method === method);
  const isDescribed = (it: (typeof describedResponses)[number]) => it.status.test(String(status));
  // An error of another path has the header fields that an operation has with this status.
  const candidates = isError && ofOperation.length === 0 ? describedResponses : ofOperation;
  const described = candidates.find(isDescribed);
  // An error that no operation describes is sent before the request reaches one.
  if (described === undefined && (!isError || describedResponses.some(isDescribed)))
    return ['this operation or status is not documented'];
  const { headers, content, schemas } = described ?? ONLY_IN_TABLE;
  const [mediaType] = (response.header('content-type') ?? 'none').split(';') as [string];
  if (content[mediaType] === undefined) return [`content type ${mediaType} is not documented`];

  const problems: string[] = [];
  const body = parsed(response.body) as { error: number; message: string } | undefined;
  if (body === undefined) return ['the body is not JSON'];
  await check(`${schemas}/${mediaType.replace('/', '~1')}/schema`, 'the body', body, problems);
  if (isError && !numbers.has(body.error))
    problems.push('the table of errors does not contain its number');
  if (isError && Math.floor(body.error / 100) !== status)
    problems.push('its number is of another status');
  if (isError && !/^\S+ .+ .+\.$/s.test(body.message)) problems.push('its message is no sentence');
  for (const [name, { $ref }] of Object.entries(headers)) {
    const value = response.header(name);
    if (value !== null) {
      // A number in a header field is text (OpenAPI 3.1, style `simple`).
      const typed: unknown = /^\d+$/.test(value) && name === 'Retry-After' ? Number(value) : value;
      await check(`${$ref}/schema`, `the header ${name}`, typed, problems);
    } else if (name !== 'Retry-After' || body.error !== WITHOUT_RETRY_AFTER) {
      problems.push(`the header ${name} is missing`);
    }
  }
  return problems;
}

/** @returns undefined for a text that is not JSON */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

async function check(schema: string, subject: string, value: unknown, problems: string[]) {
  const ajv = await (validator ??= createValidator());
  const validate = ajv.getSchema(`document${schema}`) as ValidateFunction;
  if (!validate(value)) problems.push(ajv.errorsText(validate.errors, { dataVar: subject }));
}

/** Loaded when the first response arrives: a test file without one does not need it. */
async function createValidator(): Promise<Ajv2020> {
  const [{ Ajv2020 }, { default: addFormats }] = await Promise.all([
    import('ajv/dist/2020.js'),
    import('ajv-formats'),
  ]);
  // The document is no schema itself, and contains schemas with keywords of OpenAPI.
  const ajv = new Ajv2020({ strict: false, validateSchema: false, meta: false, allErrors: true });
  addFormats.default(ajv, ['int32', 'int64']);
  return ajv.addSchema(document, 'document');
}
