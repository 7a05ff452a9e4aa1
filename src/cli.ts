// The program of all other commands, such as `./plant-store token create NAME`.

import { prepareProcess } from './process.js';

prepareProcess();
// Not a static import: see main.ts.
const { run } = await import('./cli/program.js');
const exitCode = await run(process.argv.slice(2), process);
// An embedded Postgres that failed may keep this process alive.
if (exitCode !== 0) process.exit(exitCode);
