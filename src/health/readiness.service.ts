import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { AccessTokenEntity } from '../auth/access-token.entity.js';
import { schemaProblem, type NeededPrivilege } from '../database/schema-problem.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { LifecycleService } from '../http/lifecycle.service.js';
import { PlantEntity } from '../plants/plant.entity.js';

/**
 * The privileges that requests need; commands and migrations need more. Without UPDATE on access_tokens, requests still
 * succeed, and only the last use is not recorded.
 */
const NEEDED: readonly NeededPrivilege[] = [
  { entity: PlantEntity, privilege: 'SELECT', columns: ['id', 'name', 'tag'] },
  { entity: PlantEntity, privilege: 'INSERT', columns: ['id', 'name', 'tag'] },
  // For the lock on a plant that is sent again.
  { entity: PlantEntity, privilege: 'UPDATE', columns: ['name'] },
  {
    entity: AccessTokenEntity,
    privilege: 'SELECT',
    columns: ['id', 'name', 'hash', 'expires_at', 'revoked_at'],
  },
];

/** Limits the load on the database, however many probes there are. */
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
    const problem = await schemaProblem(this.dataSource, NEEDED);
    if (problem !== undefined) throw new ServiceError(ErrorCode.databaseUnavailable, problem);
  }
}
