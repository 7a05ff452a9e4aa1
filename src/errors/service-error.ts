// The failure that a client gets as an Error, and the one that nobody gets.

export type HeaderFields = Readonly<Record<string, string>>;

/** What errors.ts declares of an error. */
export interface ErrorKind {
  /** The name of its example in the OpenAPI document. */
  readonly title: string;
  /** The HTTP status times 100 plus a serial number. Clients branch on it, so a number never changes its meaning. */
  readonly code: number;
  /** For clients: when the error is sent. */
  readonly when: string;
  /** For clients: how to react. */
  readonly remedy: string;
  /** Header fields of the response. */
  readonly headers: HeaderFields;
}

interface ServiceErrorOptions extends ErrorOptions {
  /** Header fields of the response, besides those of the kind. */
  readonly headers?: HeaderFields | undefined;
}

/**
 * A failure that is reported to the client: its kind, and a sentence that names the problem and the remedy. Every other
 * error is a fault of the service, and its client gets a constant text.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly headers: HeaderFields;

  constructor(
    readonly kind: ErrorKind,
    message: string,
    options?: ServiceErrorOptions,
  ) {
    super(message, options);
    this.headers = { ...kind.headers, ...options?.headers };
  }

  /** The number in the response. */
  get code(): number {
    return this.kind.code;
  }

  /** The HTTP status of the response: 400 for 40006. */
  get status(): number {
    return Math.floor(this.kind.code / 100);
  }
}

/** Ends the work on a request whose client has given up: nobody reads a response. */
export class ConnectionClosed extends Error {
  override readonly name = 'ConnectionClosed';
}

/** Why a request failed, in one line for the log. */
export function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? messagesOf(cause).join(': ') : message;
}

/** The messages of an error and its causes. An AggregateError has no message, and the one of `fetch` does not say why it failed. */
function messagesOf(error: Error): string[] {
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error.cause;
  return [error.message, ...(cause instanceof Error ? messagesOf(cause) : [])].filter(Boolean);
}
