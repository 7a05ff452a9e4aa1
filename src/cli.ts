import './node-version.js';

// Not a static import: see main.ts.
const { run } = await import('./cli/program.js');

// A command that did its work must not end with an error because nobody reads its messages or its help. A result that
// cannot be written is an error: see writeResult.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);

const exitCode = await run(process.argv.slice(2), process);
// An embedded Postgres that failed may keep this process alive.
if (exitCode !== 0) process.exit(exitCode);
