import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { AccessTokenEntity } from '../auth/access-token.entity.js';
import { CONFIG, type Config } from '../config/config.js';
import { schemaProblem, type NeededPrivilege } from '../database/schema-problem.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { LifecycleService } from '../http/lifecycle.service.js';
import { PLANT_FIELDS } from '../plants/plant-fields.js';
import { PlantEntity } from '../plants/plant.entity.js';

/**
 * The privileges that requests need; commands and migrations need more. Without UPDATE on access_tokens, requests still
 * succeed, and only the last use is not recorded.
 */
const NEEDED: readonly NeededPrivilege[] = [
  { entity: PlantEntity, privilege: 'SELECT', columns: PLANT_FIELDS },
  { entity: PlantEntity, privilege: 'INSERT', columns: PLANT_FIELDS },
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
  /** The time of the first failure since the database was last available, in milliseconds. */
  private unavailableSince: number | undefined;

  constructor(
    private readonly dataSource: DataSource,
    private readonly lifecycle: LifecycleService,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** @throws ServiceError shuttingDown or databaseUnavailable when the service cannot do its work */
  async check(): Promise<void> {
    this.lifecycle.refuseUnlessServing();
    // A monotonic clock: after the date is set back, a cached outcome would stay for the whole difference.
    const now = performance.now();
    if (this.checked === undefined || now - this.checked.at >= CACHE_MS) {
      this.checked = { at: now, outcome: this.checkDatabase(now) };
    }
    await this.checked.outcome;
  }

  /**
   * All instances lose a database at the same moment. If all failed at once, a load balancer would have no instance left,
   * and clients would get its error page instead of an Error with `Retry-After`.
   */
  private async checkDatabase(now: number): Promise<void> {
    let problem: string | undefined;
    try {
      problem = await schemaProblem(this.dataSource, NEEDED);
      this.unavailableSince = undefined;
    } catch (error) {
      this.unavailableSince ??= now;
      if (now - this.unavailableSince >= this.config.http.readinessTolerance) throw error;
    }
    if (problem !== undefined) throw new ServiceError(ErrorCode.databaseUnavailable, problem);
  }
}
