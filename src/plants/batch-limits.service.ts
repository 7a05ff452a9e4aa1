import {
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import type { Logger } from 'pino';
import { CONFIG, type AppConfig } from '../config/config.js';
import type { Shards } from '../database/shards.js';
import { PINO_LOGGER } from '../logging/logging.module.js';
import type { BatchLimits } from '../database/batcher.js';
import type { NewPlant } from './dto/plant.js';
import { PlantsRepository } from './plants.repository.js';

const BATCH_SIZE = 256;

/** Each number of plants is a prepared statement of its own on each connection, so it is small. */
const BATCH_SIZE_OF_SHARD = 32;

/**
 * At least 16 of the largest plants fit into it with the default `BODY_LIMIT`. A statement of all plants that a batch may have
 * by their number would take too much memory, in the database, too, and with a large `BODY_LIMIT` too much time.
 */
const BATCH_CHARACTERS = 2 ** 20;

const RETRY_INTERVAL_MS = 1000;

/**
 * Chooses how plants are sent. A batch of any plants would need nearly all shards of a distributed table, and a commit
 * in two phases, so the plants of a batch are then in one shard.
 */
@Injectable()
export class BatchLimitsService implements OnApplicationBootstrap, OnModuleDestroy {
  readonly limits: BatchLimits<NewPlant>;
  private shards: Shards | undefined;
  private isFinding = false;
  private isStopped = false;
  /** Whether the last attempt failed: only the first failure is logged. */
  private hasFailed = false;
  /** Set after an attempt that failed, until the next one. */
  private retry: NodeJS.Timeout | undefined;

  constructor(
    private readonly plants: PlantsRepository,
    @Inject(CONFIG) private readonly config: AppConfig,
    @Inject(PINO_LOGGER) private readonly logger: Logger,
  ) {
    this.limits = {
      ...this.choose(),
      characters: BATCH_CHARACTERS,
      queued: config.http.maxPendingRequests,
      wait: config.database.timeout,
    };
  }

  /** Whether the plants of a batch are in one shard. */
  get isByShard(): boolean {
    return this.shards !== undefined;
  }

  async onApplicationBootstrap(): Promise<void> {
    // A new connection may lead to another database, for example after a failover.
    this.plants.onConnect(() => void this.findShards());
    await this.findShards();
  }

  /** Afterwards, the pool is closed. */
  onModuleDestroy(): void {
    this.isStopped = true;
    clearTimeout(this.retry);
  }

  private choose(): Pick<BatchLimits<NewPlant>, 'size' | 'inFlight' | 'groupOf'> {
    const { batchSize, batchesInFlight, poolSize } = this.config.database;
    const { shards } = this;
    if (shards === undefined) {
      return { size: batchSize ?? BATCH_SIZE, inFlight: batchesInFlight ?? 1, groupOf: undefined };
    }
    return {
      size: batchSize ?? BATCH_SIZE_OF_SHARD,
      // One connection is left for tokens and readiness.
      inFlight: batchesInFlight ?? Math.max(1, poolSize - 1),
      groupOf: ({ id }) => shards.indexOf(id),
    };
  }

  private async findShards(): Promise<void> {
    // The statement may itself make a connection. In an outage, each failed statement leads to a new connection.
    if (this.isStopped || this.isFinding || this.retry !== undefined) return;
    this.isFinding = true;
    try {
      const before = this.shards?.count;
      this.shards = await this.plants.findShards();
      const { size, inFlight } = Object.assign(this.limits, this.choose());
      this.hasFailed = false;
      const count = this.shards?.count;
      if (count === before) return;
      const place = count === undefined ? 'in one table' : `distributed over ${count} shards`;
      this.logger.info(
        `The plants are ${place}: batches of up to ${size} plants, ${inFlight} at a time.`,
      );
    } catch (error) {
      if (!this.hasFailed) {
        this.logger.warn({ err: error }, 'It is unknown whether the plants are distributed.');
      }
      this.hasFailed = true;
      if (this.isStopped) return;
      this.retry = setTimeout(() => {
        this.retry = undefined;
        void this.findShards();
      }, RETRY_INTERVAL_MS).unref();
    } finally {
      this.isFinding = false;
    }
  }
}
