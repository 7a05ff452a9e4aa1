import type { Worker } from 'node:cluster';
import type { Counter } from 'prom-client';
import { createRegistry, workerRestarts } from '../metrics/registry.js';
import { takeSnapshot, WorkerMetrics, type Snapshot } from '../metrics/worker-metrics.js';
import type { ToWorker } from './messages.js';

/** How long a scrape waits for a worker that is busy; then what it said last counts. */
const PATIENCE_MS = 1000;

interface Question {
  readonly worker: Worker;
  readonly settled: Promise<void>;
  readonly settle: () => void;
  isLate: boolean;
}

/** Collects the metrics of all workers in the primary, whose own are among them. */
export class MetricsCollector {
  readonly restarts: Counter;
  private readonly registry = createRegistry();
  private readonly metrics = new WorkerMetrics();
  /** Asked and not answered yet. */
  private readonly questions = new Map<number, Question>();
  private lastQuestion = 0;

  constructor() {
    this.restarts = workerRestarts(this.registry);
  }

  /** @returns what all `workers` and the dead measured, in the text format of Prometheus */
  async read(workers: readonly Worker[]): Promise<string> {
    const questions = workers
      .filter((worker) => !this.isLate(worker))
      .map((worker) => this.ask(worker));
    const patience = setTimeout(() => {
      for (const question of questions) {
        question.isLate = true;
        question.settle();
      }
    }, PATIENCE_MS);
    await Promise.all(questions.map(({ settled }) => settled));
    clearTimeout(patience);
    return this.metrics.text(await takeSnapshot(this.registry));
  }

  /** Takes the answer to a question. */
  receive(worker: Worker, id: number, snapshot: Snapshot): void {
    const question = this.questions.get(id);
    // Of a worker that died since, what it said before was kept already.
    if (question === undefined) return;
    this.questions.delete(id);
    this.metrics.remember(worker.id, snapshot);
    question.settle();
  }

  /** The worker is dead: nobody waits for it any more. */
  bury(worker: Worker): void {
    for (const [id, question] of this.questions) {
      if (question.worker !== worker) continue;
      this.questions.delete(id);
      question.settle();
    }
    this.metrics.bury(worker.id);
  }

  private ask(worker: Worker): Question {
    const id = ++this.lastQuestion;
    const { promise, resolve } = Promise.withResolvers<void>();
    const question = { worker, settled: promise, settle: resolve, isLate: false };
    this.questions.set(id, question);
    tellWorker(worker, { type: 'measure', id });
    return question;
  }

  /** Who did not answer an earlier scrape in time is not asked again, nor waited for, before it did. */
  private isLate(worker: Worker): boolean {
    return [...this.questions.values()].some((it) => it.worker === worker && it.isLate);
  }
}

/** A worker that is just dying does not hear it; its end is noticed elsewhere. */
export function tellWorker(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.process.send(message, () => undefined);
}
