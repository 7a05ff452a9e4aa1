import './node-version.js';
import './v8-flags.js';
import './output-errors.js';
import { endAtOnce, STOP_SIGNALS } from './signals.js';

// Until the service stops gracefully: the first process of a container ignores a signal without a handler.
for (const signal of STOP_SIGNALS) process.on(signal, endAtOnce);

// Not a static import: an older Node cannot load the modules of the service, and would say that first.
const { start } = await import('./start.js');
await start();
