import { Injectable } from '@nestjs/common';
import { Registry } from 'prom-client';

/** The metrics of the service: of one process, or of all its workers. */
@Injectable()
export class MetricsService {
  private source: () => Promise<string>;

  constructor(registry: Registry) {
    this.source = () => registry.metrics();
  }

  /** Replaces the metrics of this process, so that a worker can show the metrics of all workers. */
  readFrom(source: () => Promise<string>): void {
    this.source = source;
  }

  /** @returns the text format of Prometheus */
  read(): Promise<string> {
    return this.source();
  }
}
