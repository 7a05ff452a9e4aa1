import { prepareProcess } from '../process.js';
import { STOP_SIGNALS } from '../stop-on-signal.js';

prepareProcess();
// A terminal and systemd send signals to every process of the service. Workers ignore these signals: the primary sends
// them the message `stop` instead.
for (const signal of STOP_SIGNALS) process.on(signal, () => undefined);

const { runWorker } = await import('./run-worker.js');
await runWorker();
