import { isDeepStrictEqual } from 'node:util';
import type { INestApplication } from '@nestjs/common';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';

type SchemaOrReference = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>[string];
type Schema = Exclude<SchemaOrReference, { $ref: string }>;

/** Relative to the document, so that clients use the address from which they read it. */
const DEFAULT_BASE_URL = '.';

/**
 * The OpenAPI 3.1 document, generated from the controllers and DTOs.
 *
 * @param baseUrl the default of the server variable `base_url`, without a slash at the end
 */
export function buildDocument(app: INestApplication, baseUrl = DEFAULT_BASE_URL): OpenAPIObject {
  const service: Omit<OpenAPIObject, 'paths'> = {
    openapi: '3.1.0',
    info: { title: 'OpenAPI Plant Store', version: '1.0.0', license: { name: 'MIT' } },
    servers: [
      {
        url: '{base_url}',
        variables: { base_url: { default: baseUrl, description: 'Where the service is reached' } },
      },
    ],
    security: [{ bearerAuth: [] }],
  };
  const { paths, components } = SwaggerModule.createDocument(app, service, {
    autoTagControllers: false,
  });
  for (const operations of Object.values(paths)) {
    for (const operation of Object.values(operations) as { parameters?: unknown[] }[]) {
      if (operation.parameters?.length === 0) delete operation.parameters;
    }
  }
  return {
    ...service,
    paths,
    components: {
      securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } },
      schemas: withInheritance(components?.schemas as Record<string, Schema>),
    },
  };
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
