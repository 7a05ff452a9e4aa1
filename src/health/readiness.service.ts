import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { schemaState } from '../database/migrate.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { LifecycleService } from '../http/lifecycle.service.js';

/** However many probes there are, the database is asked no more often than this. */
const CACHE_MS = 1000;

@Injectable()
export class ReadinessService {
  private checked: { readonly at: number; readonly outcome: Promise<void> } | undefined;

  constructor(
    private readonly dataSource: DataSource,
    private readonly lifecycle: LifecycleService,
  ) {}

  /** @throws ServiceError shuttingDown or databaseUnavailable when the service cannot do its work */
  async check(): Promise<void> {
    this.lifecycle.refuseUnlessServing();
    const now = Date.now();
    if (this.checked === undefined || now - this.checked.at >= CACHE_MS) {
      this.checked = { at: now, outcome: this.checkDatabase() };
    }
    await this.checked.outcome;
  }

  private async checkDatabase(): Promise<void> {
    const state = await schemaState(this.dataSource);
    if (state !== 'ready') {
      throw new ServiceError(ErrorCode.databaseUnavailable, REASONS[state]);
    }
  }
}

const REASONS = {
  outdated: 'The schema of the database is behind this version of the service: run its migrations.',
  'read-only': 'The database is read-only, as a former primary is after a fail-over.',
};
