import { isDeepStrictEqual } from 'node:util';
import type { INestApplication, Type } from '@nestjs/common';
import { getSchemaPath, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { HEADERS } from './headers.js';

type SchemaOrReference = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>[string];
type Schema = Exclude<SchemaOrReference, { $ref: string }>;

/** A constant, because the library's type accepts no object literal with `identifier`, which is new in OpenAPI 3.1. */
const LICENSE = { name: 'MIT', identifier: 'MIT' };

/** The parts of the OpenAPI document that describe the service as a whole. */
export interface ApiDescription {
  readonly title: string;
  readonly description: string;
  readonly tags: NonNullable<OpenAPIObject['tags']>;
  /** DTOs whose schema refers to the one of their base class. */
  readonly subclasses: readonly Type[];
}

/**
 * The OpenAPI 3.1 document, generated from the controllers and DTOs.
 *
 * @param baseUrl the default of the server variable `base_url`, without a slash at the end
 */
export function buildDocument(
  app: INestApplication,
  { title, description, tags, subclasses }: ApiDescription,
  baseUrl: string,
): OpenAPIObject {
  const service: Omit<OpenAPIObject, 'paths'> = {
    openapi: '3.1.0',
    info: {
      title,
      version: '1.0.0',
      description,
      contact: { name: 'The operator of the service' },
      license: LICENSE,
    },
    servers: serversAt(baseUrl),
    security: [{ bearerAuth: [] }],
    tags,
  };
  const { paths, components } = SwaggerModule.createDocument(app, service);
  for (const operations of Object.values(paths)) {
    for (const operation of Object.values(operations) as { parameters?: unknown[] }[]) {
      if (operation.parameters?.length === 0) delete operation.parameters;
    }
  }
  return {
    ...service,
    paths,
    components: {
      securitySchemes: {
        bearerAuth: {
          type: 'http',
          scheme: 'bearer',
          description:
            'The token that `./plant-store token create NAME` printed, or the one for development that the start of the service printed, or an access token of the identity provider, if the operator has set one',
        },
      },
      headers: HEADERS,
      schemas: withInheritance(components?.schemas as Record<string, Schema>, subclasses),
    },
  };
}

/** @param baseUrl the default of the server variable `base_url`, without a slash at the end */
export function serversAt(baseUrl: string): NonNullable<OpenAPIObject['servers']> {
  const description = 'The address of the service';
  return [{ url: '{base_url}', variables: { base_url: { default: baseUrl, description } } }];
}

/** The generator repeats inherited properties in the schema of a subclass, which has only its own ones here. */
function withInheritance(
  schemas: Record<string, Schema>,
  subclasses: readonly Type[],
): Record<string, Schema> {
  const extended = { ...schemas };
  for (const subclass of subclasses) {
    const base = Object.getPrototypeOf(subclass) as Type;
    const baseSchema = schemas[nameOf(base)];
    if (baseSchema === undefined) throw new Error(`Missing: @ApiExtraModels(${base.name})`);
    const name = nameOf(subclass);
    extended[name] = extend(getSchemaPath(base), baseSchema, schemas[name]!);
  }
  return extended;
}

/** The name of the schema may differ from that of the class. */
const nameOf = (dto: Type): string => getSchemaPath(dto).replace(/.*\//, '');

function extend($ref: string, base: Schema, { type: _type, ...schema }: Schema): Schema {
  const { properties = {}, required = [], ...others } = schema;
  const added = Object.entries(properties).filter(
    ([name, property]) => !isDeepStrictEqual(property, base.properties?.[name]),
  );
  const addedRequired = required.filter((name) => !base.required?.includes(name));
  const own: Schema = { type: 'object', properties: Object.fromEntries(added) };
  if (addedRequired.length > 0) own.required = addedRequired;
  return { ...others, allOf: [{ $ref }, own] };
}
