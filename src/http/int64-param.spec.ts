import type { ServerResponse } from 'node:http';
import { expect, it } from '@jest/globals';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SwaggerModule } from '@nestjs/swagger';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { fetchDocumented } from '../../test/setup/http/fetch-documented.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { ErrorFilter } from '../errors/error.filter.js';
import { pathNotFound } from '../errors/errors.js';
import { Int64Param } from './int64-param.js';

const resources = useResources();

@Controller('things')
class ThingsController {
  @Get(':id')
  read(@Int64Param('id', { description: 'The id', example: 1 }, () => pathNotFound()) id: bigint): {
    id: string;
  } {
    return { id: String(id) };
  }
}

@Module({ controllers: [ThingsController] })
class ThingsModule {}

async function start(): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(ThingsModule, { logger: false });
  app.useGlobalFilters(new ErrorFilter());
  app.use((_request: unknown, response: ServerResponse, next: () => void) => {
    response.setHeader('X-Request-Id', 'of every response');
    next();
  });
  await app.listen(0, '127.0.0.1');
  resources.defer(() => app.close());
  return app;
}

it('reads an exact id, and responds to any other text as to an id that nothing has', async () => {
  const app = await start();
  const get = async (id: string) => {
    const response = await fetchDocumented(`${await app.getUrl()}/things/${id}`);
    return { status: response.status, ...((await response.json()) as object) };
  };
  for (const id of ['9223372036854775807', '-9223372036854775808', '0']) {
    expect(await get(id)).toEqual({ status: 200, id });
  }
  for (const text of ['9223372036854775808', '1.0', '01', '+1', 'a', '%20']) {
    expect(await get(text)).toMatchObject({ status: 404, error: 40400 });
  }
});

it('is an int64 in the OpenAPI document', async () => {
  const { paths } = SwaggerModule.createDocument(await start(), {
    openapi: '3.1.0',
    info: { title: '', version: '' },
  });
  expect(paths['/things/{id}']!.get!.parameters).toEqual([
    {
      name: 'id',
      in: 'path',
      required: true,
      description: 'The id',
      schema: { type: 'integer', format: 'int64', examples: [1] },
    },
  ]);
});
