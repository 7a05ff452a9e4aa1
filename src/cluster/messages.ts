import type { Snapshot } from '../metrics/worker-metrics.js';

/** What the primary tells a worker that listens. */
export type ToWorker =
  /** Stop in good order. */
  | { readonly type: 'stop' }
  | { readonly type: 'measure'; readonly id: number }
  | { readonly type: 'metrics'; readonly id: number; readonly text: string };

/** What a worker tells the primary. */
export type ToPrimary =
  | { readonly type: 'listening'; readonly url: string }
  /** The start failed, and why, in words for the operator. The worker ends. */
  | { readonly type: 'failed'; readonly reason: string }
  | { readonly type: 'measured'; readonly id: number; readonly snapshot: Snapshot }
  /** Somebody asks for the metrics of all workers. */
  | { readonly type: 'read-metrics'; readonly id: number };
