import { runCommand, runProgram, type Command } from './command.js';

const attempts: Command[] = [];

/** Runs a command that should end by itself. */
export function attempt(...parameters: Parameters<typeof runCommand>): Command {
  return toBeEnded(runCommand(...parameters));
}

/** Like `attempt`, for any program. */
export function attemptProgram(...parameters: Parameters<typeof runProgram>): Command {
  return toBeEnded(runProgram(...parameters));
}

function toBeEnded(command: Command): Command {
  attempts.push(command);
  return command;
}

/** Ends the commands that still run although they should have ended. */
export function endAttempts(): void {
  for (const { process } of attempts.splice(0)) process.kill('SIGKILL');
}

/** Standard error without the message that names the data folder. */
export function reasonOf(command: Command): string {
  return command.stderr.replace(/^Opening the embedded Postgres in .+ …\n/, '');
}
