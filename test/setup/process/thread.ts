import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Resources } from '../jest/resources.js';

const PROGRAM = `
  const { parentPort, workerData } = require('node:worker_threads');
  import(workerData.url).then((module) => {
    const run = (0, eval)(workerData.run);
    parentPort.postMessage(run(module, workerData.input));
  });`;

/**
 * Runs a function in a thread. One that never ends makes only its test fail, by its time limit; in the thread of the
 * test, nothing could end it.
 *
 * @param module the path of a built module in `dist`
 * @param run uses nothing but its parameters, because the thread gets its text
 * @returns what `run` returns
 */
export async function runInThread<Module, Input, Output>(
  resources: Resources,
  module: string,
  run: (module: Module, input: Input) => Output,
  input: Input,
): Promise<Output> {
  const url = new URL(`../../../dist/${module}`, import.meta.url).href;
  const thread = new Worker(PROGRAM, { eval: true, workerData: { url, run: String(run), input } });
  resources.defer(async () => void (await thread.terminate()));
  const [output] = (await once(thread, 'message')) as [Output];
  return output;
}
