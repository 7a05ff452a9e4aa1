import { isDeepStrictEqual } from 'node:util';
import type { INestApplication } from '@nestjs/common';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { HEADERS } from './headers.js';

type SchemaOrReference = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>[string];
type Schema = Exclude<SchemaOrReference, { $ref: string }>;

/** Not in place below, because the library's type does not have `identifier`, which is new in OpenAPI 3.1. */
const LICENSE = { name: 'MIT', identifier: 'MIT' };

/** What the document says about the service as a whole. */
export interface ApiDescription {
  readonly title: string;
  readonly description: string;
  readonly tags: NonNullable<OpenAPIObject['tags']>;
}

/**
 * The OpenAPI 3.1 document, generated from the controllers and DTOs.
 *
 * @param baseUrl the default of the server variable `base_url`, without a slash at the end
 */
export function buildDocument(
  app: INestApplication,
  { title, description, tags }: ApiDescription,
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
      schemas: withInheritance(components?.schemas as Record<string, Schema>),
    },
  };
}

/** @param baseUrl the default of the server variable `base_url`, without a slash at the end */
export function serversAt(baseUrl: string): NonNullable<OpenAPIObject['servers']> {
  const description = 'Where the service is reached';
  return [{ url: '{base_url}', variables: { base_url: { default: baseUrl, description } } }];
}

/**
 * The generator repeats inherited properties in the schema of a subclass. Here, a schema that has all properties of
 * another schema is changed to refer to that schema with `allOf`, and to list only its own properties.
 */
function withInheritance(schemas: Record<string, Schema>): Record<string, Schema> {
  const entries = Object.entries(schemas);
  return Object.fromEntries(
    entries.map(([name, schema]) => {
      const base = entries.find(([, other]) => isBaseOf(other, schema));
      return [name, base === undefined ? schema : extend(base[0], base[1], schema)];
    }),
  );
}

function isBaseOf(base: Schema, { properties = {} }: Schema): boolean {
  const names = Object.keys(base.properties ?? {});
  return (
    names.length < Object.keys(properties).length &&
    names.every((name) => isDeepStrictEqual(base.properties![name], properties[name]))
  );
}

function extend(baseName: string, base: Schema, { properties, required }: Schema): Schema {
  const isAdded = (name: string) => !(name in base.properties!);
  const addedProperties = Object.entries(properties!).filter(([name]) => isAdded(name));
  return {
    allOf: [
      { $ref: `#/components/schemas/${baseName}` },
      {
        type: 'object',
        properties: Object.fromEntries(addedProperties),
        required: required!.filter(isAdded),
      },
    ],
  };
}
