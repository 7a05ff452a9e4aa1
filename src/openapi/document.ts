import { isDeepStrictEqual } from 'node:util';
import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';

type SchemaOrReference = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>[string];
type Schema = Exclude<SchemaOrReference, { $ref: string }>;

/** Without a setting, clients find the service where they found the document. */
const DEFAULT_BASE_URL = '.';

/**
 * The OpenAPI 3.1 document, generated from the controllers and DTOs.
 *
 * @param baseUrl the default of the server variable `base_url`, without a slash at the end
 */
export function buildDocument(app: INestApplication, baseUrl = DEFAULT_BASE_URL): OpenAPIObject {
  const config = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('OpenAPI Plant Store')
    .setVersion('1.0.0')
    .setLicense('MIT', '')
    .addServer('{base_url}', undefined, {
      base_url: { default: baseUrl, description: 'Where the service is reached' },
    })
    .addBearerAuth({ type: 'http', scheme: 'bearer' }, 'bearerAuth')
    .addSecurityRequirements('bearerAuth')
    .build();
  return tidy(SwaggerModule.createDocument(app, config, { autoTagControllers: false }));
}

/** Removes what the generator adds without being asked, and writes inheritance as the specification does. */
function tidy({
  info,
  paths,
  components,
  servers,
  security,
  openapi,
}: OpenAPIObject): OpenAPIObject {
  for (const operations of Object.values(paths)) {
    for (const operation of Object.values(operations) as { parameters?: unknown[] }[]) {
      if (operation.parameters?.length === 0) delete operation.parameters;
    }
  }
  return {
    openapi,
    info: { title: info.title, version: info.version, license: { name: 'MIT' } },
    servers: servers ?? [],
    security: security ?? [],
    paths,
    components: {
      securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } },
      schemas: withInheritance((components?.schemas ?? {}) as Record<string, Schema>),
    },
  };
}

/** The generator writes inherited properties out: a schema that has all properties of another one extends it. */
function withInheritance(schemas: Record<string, Schema>): Record<string, Schema> {
  const entries = Object.entries(schemas);
  return Object.fromEntries(
    entries.map(([name, schema]) => {
      const base = entries.find(([, other]) => isBaseOf(other, schema));
      return [name, base === undefined ? schema : extend(base[0], schema, base[1])];
    }),
  );
}

function isBaseOf({ properties: own = {} }: Schema, { properties = {} }: Schema): boolean {
  const names = Object.keys(own);
  return (
    names.length < Object.keys(properties).length &&
    names.every((name) => isDeepStrictEqual(own[name], properties[name]))
  );
}

/** What a schema adds to the one it extends. */
function extend(
  base: string,
  { properties = {}, required = [] }: Schema,
  baseSchema: Schema,
): Schema {
  const isOwn = (name: string) => !(name in (baseSchema.properties ?? {}));
  return {
    allOf: [
      { $ref: `#/components/schemas/${base}` },
      {
        type: 'object',
        properties: Object.fromEntries(Object.entries(properties).filter(([name]) => isOwn(name))),
        required: required.filter(isOwn),
      },
    ],
  };
}
