import { Controller, Get, Header } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { Public } from '../auth/public.decorator.js';
import { ReadinessService } from './readiness.service.js';

export interface Health {
  readonly status: 'ok';
}

@Public()
@ApiExcludeController()
@Controller('health')
export class HealthController {
  constructor(private readonly readiness: ReadinessService) {}

  /** The process responds, so a restart would not help. Never touches the database. */
  @Get('live')
  @Header('Cache-Control', 'no-store')
  live(): Health {
    return { status: 'ok' };
  }

  /** The service can do its work; if not, send it no requests. */
  @Get('ready')
  @Header('Cache-Control', 'no-store')
  async ready(): Promise<Health> {
    await this.readiness.check();
    return { status: 'ok' };
  }
}
