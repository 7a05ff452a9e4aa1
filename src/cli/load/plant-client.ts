// For the person who loads a file: each plant is stored, refused with a reason, or sent again.

import { Pool, type Dispatcher } from 'undici';
import { CommandError } from '../command-error.js';

/** The service cannot be used with this URL and token: the plant was not stored. */
export class UnusableServiceError extends CommandError {}

/** The result of sending a plant. */
export type Outcome =
  | { readonly kind: 'stored' }
  | { readonly kind: 'refused'; readonly error: number; readonly message: string }
  /** Nobody knows whether it was stored: it must be sent again. */
  | { readonly kind: 'unknown'; readonly reason: string; readonly retryAfter: number };

/** Responses of the service, or of a proxy before it, after which the same request may succeed. */
const TEMPORARY: readonly number[] = [408, 429, 502, 503, 504];

/** There was no connection, so nothing was sent. */
const NO_CONNECTION: readonly string[] = [
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** The service responds earlier, unless its DATABASE_TIMEOUT_MS is very long. */
const RESPONSE_TIMEOUT_MS = 60_000;

/** Sends plants to a service, which a proxy may be in front of, and which may be unavailable. */
export class PlantClient {
  private readonly pool: Pool;
  private hasResponded = false;

  constructor(
    private readonly url: URL,
    private readonly token: string,
  ) {
    this.pool = new Pool(url.origin, {
      headersTimeout: RESPONSE_TIMEOUT_MS,
      bodyTimeout: RESPONSE_TIMEOUT_MS,
    });
  }

  /** @throws CommandError when no plant can be sent with this URL and token */
  async send(json: string): Promise<Outcome> {
    let status: number;
    let headers: Dispatcher.ResponseData['headers'];
    let text: string;
    try {
      const response = await this.pool.request({
        method: 'POST',
        path: `${this.url.pathname.replace(/\/+$/, '')}/plants`,
        headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
        body: json,
      });
      ({ statusCode: status, headers } = response);
      text = await response.body.text();
    } catch (error) {
      return this.explainNoResponse(error);
    }
    this.hasResponded = true;
    if (status === 200 && isPlant(text)) return { kind: 'stored' };
    const failure = parseError(text);
    const problem = failure === undefined ? `${status}` : `${failure.error}: ${failure.message}`;
    if (TEMPORARY.includes(status)) {
      const retryAfter = Math.max(1, Number(headers['retry-after']) || 1);
      return { kind: 'unknown', reason: problem, retryAfter };
    }
    if (failure !== undefined && (status === 400 || status === 500)) {
      return { kind: 'refused', ...failure };
    }
    if (failure !== undefined && status === 401) {
      throw new UnusableServiceError(
        `The service refuses the token in PLANT_STORE_TOKEN (${failure.error}). Create another one: ` +
          './plant-store token create loader',
      );
    }
    throw new UnusableServiceError(
      `${this.url.href} did not respond as a Plant Store does (${problem}). Check --url or PLANT_STORE_URL.`,
    );
  }

  close(): Promise<void> {
    return this.pool.destroy();
  }

  /** Before the first response, the URL is probably wrong. After it, the service is unavailable, and is waited for. */
  private explainNoResponse(error: unknown): Outcome {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = `no response (${code ?? message})`;
    if (!this.hasResponded) {
      const Failure = NO_CONNECTION.includes(code ?? '') ? UnusableServiceError : CommandError;
      throw new Failure(
        `${this.url.href} gave ${reason}. Is the service running? Check --url or PLANT_STORE_URL.`,
        {
          cause: error,
        },
      );
    }
    return { kind: 'unknown', reason, retryAfter: 1 };
  }
}

/** The page of a login or of a proxy also has the status 200. */
function isPlant(text: string): boolean {
  try {
    return typeof (JSON.parse(text) as { name?: unknown } | null)?.name === 'string';
  } catch {
    return false;
  }
}

/** @returns undefined if the response is not an Error of a Plant Store */
function parseError(text: string): { error: number; message: string } | undefined {
  try {
    const { error, message } = JSON.parse(text) as Record<string, unknown>;
    return typeof error === 'number' && typeof message === 'string'
      ? { error, message }
      : undefined;
  } catch {
    return undefined;
  }
}
