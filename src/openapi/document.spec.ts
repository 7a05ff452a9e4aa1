import { expect, it } from '@jest/globals';
import { Controller, Get, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ApiOkResponse, ApiProperty, ApiSchema } from '@nestjs/swagger';
import { buildDocument } from './document.js';

const TEXT = { type: 'string' } as const;

class Named {
  @ApiProperty(TEXT)
  name: string;

  @ApiProperty({ ...TEXT, required: false })
  tag?: string;
}

/** The schemas of a document in which each DTO is a response. */
async function schemasOf(dtos: Type[], subclasses: Type[]): Promise<object> {
  const controllers = dtos.map((type) => {
    @Controller(type.name)
    class TestController {
      @Get()
      @ApiOkResponse({ type })
      read(): void {}
    }
    return TestController;
  });
  @Module({ controllers })
  class TestModule {}
  const app = await NestFactory.create(TestModule, { preview: true, logger: false });
  const api = { title: 'Test', description: 'Test', tags: [], subclasses };
  return buildDocument(app, api, 'http://localhost').components!.schemas!;
}

const extension = (base: string, added: object) => ({
  allOf: [{ $ref: `#/components/schemas/${base}` }, { type: 'object', ...added }],
});

it('a subclass refers to its base class, and has only what it adds', async () => {
  class Numbered extends Named {
    @ApiProperty({ type: 'integer' })
    id: bigint;
  }
  class Dated extends Numbered {
    @ApiProperty(TEXT)
    date: string;
  }
  expect(await schemasOf([Named, Numbered, Dated], [Numbered, Dated])).toMatchObject({
    Numbered: extension('Named', { properties: { id: { type: 'integer' } }, required: ['id'] }),
    Dated: extension('Numbered', { properties: { date: TEXT }, required: ['date'] }),
  });
});

it('a subclass may add optional properties only', async () => {
  class Tagged {
    @ApiProperty({ ...TEXT, required: false })
    tag?: string;
  }
  class Remarked extends Tagged {
    @ApiProperty({ ...TEXT, required: false })
    remark?: string;
  }
  expect(await schemasOf([Tagged, Remarked], [Remarked])).toEqual({
    Tagged: { type: 'object', properties: { tag: TEXT } },
    Remarked: extension('Tagged', { properties: { remark: TEXT } }),
  });
});

it('a subclass keeps what it changes of its base class', async () => {
  class Tagged extends Named {
    @ApiProperty({ ...TEXT, description: 'Never empty' })
    declare name: string;

    @ApiProperty({ ...TEXT, required: true })
    declare tag: string;
  }
  expect(await schemasOf([Named, Tagged], [Tagged])).toMatchObject({
    Tagged: extension('Named', {
      properties: { name: { ...TEXT, description: 'Never empty' } },
      required: ['tag'],
    }),
  });
});

it('a subclass keeps its name and its description', async () => {
  @ApiSchema({ name: 'Other', description: 'Another one' })
  class Renamed extends Named {}
  expect(await schemasOf([Named, Renamed], [Renamed])).toMatchObject({
    Other: { description: 'Another one', ...extension('Named', {}) },
  });
});

it('a DTO that has all properties of another one is not its subclass', async () => {
  class Longer {
    @ApiProperty(TEXT)
    name: string;

    @ApiProperty({ ...TEXT, required: false })
    tag?: string;

    @ApiProperty(TEXT)
    more: string;
  }
  expect(await schemasOf([Named, Longer], [])).toMatchObject({
    Longer: { properties: { name: TEXT, tag: TEXT, more: TEXT } },
  });
});

it('a base class without a schema is a fault', async () => {
  class Numbered extends Named {}
  await expect(schemasOf([Numbered], [Numbered])).rejects.toThrow(
    'Missing: @ApiExtraModels(Named)',
  );
});
