/** A failure whose message is meant for the operator: what is wrong, where, and what to do, without secrets. */
export class StartError extends Error {
  override readonly name: string = 'StartError';
}
