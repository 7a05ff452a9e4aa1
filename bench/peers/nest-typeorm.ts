import { Body, Controller, Injectable, Module, Post, ValidationPipe } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { IsInt, IsOptional, IsString } from 'class-validator';
import { Column, Entity, PrimaryColumn, Repository } from 'typeorm';

@Entity('plants')
class Plant {
  @PrimaryColumn('bigint')
  id: number;

  @Column('text')
  name: string;

  @Column('text', { nullable: true })
  tag?: string;
}

class CreatePlantDto {
  @IsInt()
  id: number;

  @IsString()
  name: string;

  @IsOptional()
  @IsString()
  tag?: string;
}

@Injectable()
class PlantsService {
  constructor(@InjectRepository(Plant) private readonly plants: Repository<Plant>) {}

  create(dto: CreatePlantDto): Promise<Plant> {
    return this.plants.save(this.plants.create(dto));
  }
}

@Controller('plants')
class PlantsController {
  constructor(private readonly plants: PlantsService) {}

  @Post()
  create(@Body() dto: CreatePlantDto): Promise<Plant> {
    return this.plants.create(dto);
  }
}

@Module({
  imports: [
    TypeOrmModule.forRoot({
      type: 'postgres',
      url: process.env['DATABASE_URL']!,
      entities: [Plant],
    }),
    TypeOrmModule.forFeature([Plant]),
  ],
  controllers: [PlantsController],
  providers: [PlantsService],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
app.useGlobalPipes(new ValidationPipe());
await app.listen(Number(process.env['PORT']), '127.0.0.1');
