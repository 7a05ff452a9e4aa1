import type { Resources } from '../jest/resources.js';
import { runCommand, runProgram, type Command } from './command.js';

/** Runs a command that should end by itself. If it does not, it ends with the test. */
export function attempt(
  resources: Resources,
  ...parameters: Parameters<typeof runCommand>
): Command {
  return toBeEnded(resources, runCommand(...parameters));
}

/** Like `attempt`, for any program. */
export function attemptProgram(
  resources: Resources,
  ...parameters: Parameters<typeof runProgram>
): Command {
  return toBeEnded(resources, runProgram(...parameters));
}

function toBeEnded(resources: Resources, command: Command): Command {
  resources.defer(() => void command.process.kill('SIGKILL'));
  return command;
}
