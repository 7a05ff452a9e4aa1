import { Controller, Get, Header } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { Public } from '../auth/public.decorator.js';
import { version } from '../config/version.js';
import { ReadinessService } from './readiness.service.js';

@Public()
@ApiExcludeController()
@Controller('health')
export class HealthController {
  constructor(private readonly readiness: ReadinessService) {}

  /** Does not use the database: if that is down, a restart of this process would not help. */
  @Get('live')
  @Header('Cache-Control', 'no-store')
  live(): { status: string; version: string } {
    return { status: 'ok', version };
  }

  /** Fails while a load balancer should not send requests to this process. */
  @Get('ready')
  @Header('Cache-Control', 'no-store')
  async ready(): Promise<{ status: string }> {
    await this.readiness.check();
    return { status: 'ok' };
  }
}
