import './node-version.js';
import './v8-flags.js';
// For messages and help. A result that cannot be written is an error: see writeResult.
import './output-errors.js';
import './signals.js';

// Not a static import: see main.ts.
const { run } = await import('./cli/program.js');

const exitCode = await run(process.argv.slice(2), process);
// An embedded Postgres that failed may keep this process alive.
if (exitCode !== 0) process.exit(exitCode);
