import { Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { poolOf } from './run-statement.js';

@Injectable()
export class PoolMetrics {
  constructor(dataSource: DataSource, registry: Registry) {
    // TypeORM forgets the pool when it closes it, while a process that stops still reports its metrics.
    const pool = poolOf(dataSource);
    new Gauge({
      name: 'plant_store_database_connections',
      help: 'Connections of the pool, by state.',
      labelNames: ['state'],
      registers: [registry],
      collect() {
        const { totalCount, idleCount } = pool;
        this.set({ state: 'idle' }, idleCount);
        this.set({ state: 'busy' }, totalCount - idleCount);
      },
    });
    new Gauge({
      name: 'plant_store_database_waiting',
      help: 'Statements that wait for a connection of the pool.',
      registers: [registry],
      collect() {
        this.set(pool.waitingCount);
      },
    });
  }
}
