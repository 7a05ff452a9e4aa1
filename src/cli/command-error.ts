/** A command that failed. The message is for the operator. */
export class CommandError extends Error {
  readonly exitCode: number = 1;
}

/** A command that was not understood. */
export class UsageError extends CommandError {
  override readonly exitCode = 2;
}
