import './node-version.js';
import './v8-flags.js';
import './output-errors.js';
import './signals.js';

// Not a static import: an older Node cannot load the modules of the service, and would say that first.
const { start } = await import('./start.js');
await start();
