import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { Logger } from 'pino';
import { CONFIG, type AppConfig } from '../config/config.js';
import { REQUEST_LOGGER } from '../logging/logging.module.js';
import type { BatchLimits } from './batcher.js';
import { PlantsRepository } from './plants.repository.js';

const BATCH_SIZE = 256;

/**
 * Chooses how plants are sent, unless settings do. In one table, batches save commits. If the plants are distributed
 * over several servers, a batch would need nearly all of them, and a commit in two phases: each plant is sent alone.
 */
@Injectable()
export class BatchLimitsService implements OnApplicationBootstrap {
  readonly limits: BatchLimits;
  private isDistributed = false;
  private isLooking = false;

  constructor(
    private readonly plants: PlantsRepository,
    @Inject(CONFIG) private readonly config: AppConfig,
    @Inject(REQUEST_LOGGER) private readonly logger: Logger,
  ) {
    this.limits = {
      ...this.choose(),
      queued: config.http.maxPendingRequests,
      wait: config.database.timeout,
    };
  }

  async onApplicationBootstrap(): Promise<void> {
    const { batchSize, batchesInFlight } = this.config.database;
    if (batchSize !== undefined && batchesInFlight !== undefined) return;
    // A new connection may lead to another database, for example after a fail-over.
    this.plants.onConnect(() => void this.look());
    await this.look();
  }

  private choose(): Pick<BatchLimits, 'size' | 'inFlight'> {
    const { batchSize, batchesInFlight, poolSize } = this.config.database;
    return {
      size: batchSize ?? (this.isDistributed ? 1 : BATCH_SIZE),
      // One connection is left for tokens and readiness.
      inFlight: batchesInFlight ?? (this.isDistributed ? Math.max(1, poolSize - 1) : 1),
    };
  }

  private async look(): Promise<void> {
    // Looking may itself make a connection.
    if (this.isLooking) return;
    this.isLooking = true;
    try {
      const isDistributed = await this.plants.areDistributed();
      if (isDistributed === this.isDistributed) return;
      this.isDistributed = isDistributed;
      const { size, inFlight } = Object.assign(this.limits, this.choose());
      const place = isDistributed ? 'distributed over several servers' : 'in one table';
      const plants = size === 1 ? 'one by one' : `in batches of up to ${size}`;
      this.logger.info(`The plants are ${place}. They are sent ${plants}, ${inFlight} at a time.`);
    } catch (error) {
      // A failed statement closes its connection, so the next connection repeats the look.
      this.logger.warn({ err: error }, 'It is unknown whether the plants are distributed.');
    } finally {
      this.isLooking = false;
    }
  }
}
