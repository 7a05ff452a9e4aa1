import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { runStatement } from '../database/run-statement.js';
import { LifecycleService } from '../http/lifecycle.service.js';

@Injectable()
export class ReadinessService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly lifecycle: LifecycleService,
  ) {}

  /** @throws ServiceError databaseUnavailable or shuttingDown when the service cannot do its work */
  async check(): Promise<void> {
    this.lifecycle.refuseUnlessServing();
    await runStatement(this.dataSource, 'SELECT 1', []);
  }
}
