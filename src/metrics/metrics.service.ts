import { Injectable } from '@nestjs/common';
import { Registry } from 'prom-client';

/** What this instance of the service measured: one process, or all its workers. */
@Injectable()
export class MetricsService {
  private source: () => Promise<string>;

  constructor(registry: Registry) {
    this.source = () => registry.metrics();
  }

  /** Lets a worker show the metrics of all workers. */
  readFrom(source: () => Promise<string>): void {
    this.source = source;
  }

  /** @returns the text format of Prometheus */
  read(): Promise<string> {
    return this.source();
  }
}
