import { runCommand, type Command } from './command.js';

const attempts: Command[] = [];

/** Runs what is expected to end by itself. */
export function attempt(...parameters: Parameters<typeof runCommand>): Command {
  const command = runCommand(...parameters);
  attempts.push(command);
  return command;
}

/** Ends the attempts that succeeded against expectation, which would go on for ever. */
export function endAttempts(): void {
  for (const { process } of attempts.splice(0)) process.kill('SIGKILL');
}

/** Standard error, but for the line that says what the service is about to open. */
export function reasonOf(command: Command): string {
  return command.stderr.replace(/^Opening the embedded Postgres in .+ …\n/, '');
}
