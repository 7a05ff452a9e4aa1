import { noResponse } from '../http/fetch-documented.js';
import { postPlant } from '../http/post-plant.js';
import type { Resources } from '../jest/resources.js';
import { until } from '../time/until.js';

/** Clients that send one plant after the other, and record every acknowledged one. */
export interface Load {
  /** Ids whose response was 200. */
  readonly acknowledged: Set<string>;
  /** Counts of all other responses, by status; 0 stands for no response. */
  readonly failures: Map<number, number>;
  /**
   * Waits until this many more plants are acknowledged.
   *
   * @throws UndocumentedError when a response was not as openapi.json says
   */
  progress(count: number): Promise<void>;
  /** @throws UndocumentedError when a response was not as openapi.json says */
  stop(): Promise<void>;
}

/**
 * Starts clients, which stop with the test at the latest.
 *
 * @param target returns the URL of the service for the next request
 */
export function startLoad(
  resources: Resources,
  target: () => string,
  token: string,
  clients = 16,
): Load {
  const acknowledged = new Set<string>();
  const failures = new Map<number, number>();
  let isRunning = true;
  let nextId = 1n;

  const run = async () => {
    while (isRunning) {
      const id = String(nextId++ * 1_000_000_007n);
      const response = await postPlant(target(), token, id, `plant ${id}`).catch(noResponse);
      const status = response?.status ?? 0;
      if (status === 200) acknowledged.add(id);
      else failures.set(status, (failures.get(status) ?? 0) + 1);
    }
  };
  let problem: Error | undefined;
  const runToProblem = () =>
    run().catch((error: Error) => {
      isRunning = false;
      problem = error;
    });
  const running = Array.from({ length: clients }, runToProblem);
  const throwProblem = () => {
    if (problem !== undefined) throw problem;
  };

  const load: Load = {
    acknowledged,
    failures,
    async progress(count) {
      const goal = acknowledged.size + count;
      await until(() => {
        throwProblem();
        return acknowledged.size >= goal;
      });
    },
    async stop() {
      isRunning = false;
      await Promise.all(running);
      throwProblem();
    },
  };
  resources.defer(() => load.stop());
  return load;
}
