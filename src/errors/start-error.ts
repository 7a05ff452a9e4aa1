/** A failure whose message is written for the operator: it names the problem and the remedy, and no secret. */
export class StartError extends Error {
  override readonly name: string = 'StartError';
}
