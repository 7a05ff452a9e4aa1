import '../v8-flags.js';
import '../output-errors.js';
import { STOP_SIGNALS } from '../signals.js';

// A terminal and systemd send signals to every process of the service. Workers ignore these signals: the primary sends
// them the message `stop` instead.
for (const signal of STOP_SIGNALS) process.on(signal, () => undefined);

// Not a static import: V8 would compile these modules before its flags are set, and not use what it compiled for main.ts.
const { runWorker } = await import('./run-worker.js');
await runWorker();
