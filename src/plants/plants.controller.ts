import { Controller, HttpCode, Post } from '@nestjs/common';
import { ApiBody, ApiTags } from '@nestjs/swagger';
import { RequestClient, type Client } from '../http/client.js';
import { JsonBody } from '../http/json-body.js';
import { Operation } from '../openapi/operation.js';
import { CREATE_PLANT_ERRORS } from './create-plant.errors.js';
import { NewPlant, Plant } from './dto/plant.js';
import { PlantsService } from './plants.service.js';

@Controller('plants')
@ApiTags('plants')
export class PlantsController {
  constructor(private readonly plants: PlantsService) {}

  @Post()
  @HttpCode(200)
  @Operation({
    operationId: 'createPlant',
    summary: 'Store a plant',
    description:
      'Stores the plant, once and for good. Sending the same plant again, with the same fields, gets 200 and stores nothing new, so retrying is safe. An id that belongs to a different plant is refused with error 40006.',
    success: { type: Plant, description: 'The plant is stored' },
    errors: CREATE_PLANT_ERRORS,
  })
  @ApiBody({
    type: NewPlant,
    description: 'The plant to store',
    examples: {
      withTag: {
        summary: 'With a tag',
        value: { id: 1649503004888048, name: 'Equisetum fluviatile', tag: 'Equisetum' },
      },
      withoutTag: {
        summary: 'Without a tag',
        value: { id: 1371039225586142, name: 'Malva neglecta' },
      },
    },
  })
  create(@JsonBody(NewPlant) plant: NewPlant, @RequestClient() client: Client): Promise<Plant> {
    return this.plants.create(plant, client);
  }
}
