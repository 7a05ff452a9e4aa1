import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { CONFIG, type Config } from '../config/config.js';
import { schemaProblem, type NeededPrivilege } from '../database/schema-problem.js';
import type { ServiceError } from '../errors/service-error.js';
import { LifecycleService } from '../http/lifecycle.service.js';

/**
 * The privileges that requests need; commands and migrations need more. Without UPDATE on access_tokens, requests still
 * succeed, and only the last use is not recorded.
 */
export const NEEDED_PRIVILEGES: readonly NeededPrivilege[] = [
  { table: 'plants', privilege: 'SELECT' },
  { table: 'plants', privilege: 'INSERT' },
  // For the lock on a plant that is sent again.
  { table: 'plants', privilege: 'UPDATE' },
  { table: 'access_tokens', privilege: 'SELECT' },
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
    let problem: ServiceError | undefined;
    try {
      problem = await schemaProblem(this.dataSource, NEEDED_PRIVILEGES);
      this.unavailableSince = undefined;
    } catch (error) {
      this.unavailableSince ??= now;
      if (now - this.unavailableSince >= this.config.http.readinessTolerance) throw error;
    }
    if (problem !== undefined) throw problem;
  }
}
