// The program `./plant-store start`.

import { prepareProcess } from './process.js';
import { endOnSignal } from './stop-on-signal.js';

prepareProcess();
endOnSignal();
// Not a static import: an older Node cannot load the modules of the service, and would say that first.
const { start } = await import('./start.js');
await start();
