import type { AppConfig } from '../config/config.js';
import type { Snapshot } from './worker-metrics.js';

/** The first message to a worker. A password in its environment could be read by other programs of the user. */
export interface WorkerSettings {
  /** The number of the worker, from 1. */
  readonly worker: number;
  readonly config: AppConfig;
}

/** What the primary sends later. */
export type ToWorker =
  | { readonly type: 'stop' }
  /** The metrics of the service, in response to the oldest `scrape` that has none. */
  | { readonly type: 'metrics'; readonly text: string };

/** What a worker sends. */
export type ToPrimary =
  | { readonly type: 'listening'; readonly url: string }
  /** The worker could not start and ends; the reason is meant for the operator. */
  | { readonly type: 'failed'; readonly reason: string }
  | { readonly type: 'snapshot'; readonly snapshot: Snapshot }
  /** A client of the worker asks for the metrics of the service. */
  | { readonly type: 'scrape' };
