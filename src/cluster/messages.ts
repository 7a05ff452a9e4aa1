import type { AppConfig } from '../config/config.js';
import type { Snapshot } from './worker-metrics.js';

/**
 * The first message to a worker. The settings are not passed in environment variables: other programs could read the
 * password of the database there.
 */
export interface WorkerSettings {
  /** The number of the worker, from 1. */
  readonly worker: number;
  readonly config: AppConfig;
}

/** All later messages to a worker. */
export type ToWorker =
  | { readonly type: 'stop' }
  /** The metrics of the service, in response to the oldest `scrape` in flight. */
  | { readonly type: 'metrics'; readonly text: string };

export type ToPrimary =
  | { readonly type: 'listening'; readonly url: string }
  /** The worker could not start and exits; the reason is a message for the operator. */
  | { readonly type: 'failed'; readonly reason: string }
  | { readonly type: 'snapshot'; readonly snapshot: Snapshot }
  /** A client of the worker requests the metrics of the service. */
  | { readonly type: 'scrape' };
