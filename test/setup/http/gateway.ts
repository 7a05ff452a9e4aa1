import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { fetchDocumented, noResponse } from './fetch-documented.js';
import { startServer } from './open-server.js';

/** What happens to a request instead of a normal response. */
export type GatewayFault =
  | {
      readonly status: number;
      readonly retryAfter?: string;
      readonly body?: string;
      /** The connection ends before the whole body was sent. */
      readonly isCut?: true;
    }
  /** The service gets the request, and the client no response, or only the beginning of one. */
  | 'lost'
  | 'cut';

/** A gateway in front of the service, which limits rates and loses responses. */
export interface Gateway {
  readonly url: string;
  /** The bodies that arrived, with the time in ms. */
  readonly requests: readonly { readonly body: string; readonly at: number }[];
  /** The faults of the next requests, one each. */
  readonly faults: GatewayFault[];
  /** Is called for every response of the service, before the client gets it. */
  onResponse: (status: number) => void;
  /** @throws UndocumentedError when a response of the service was not as openapi.json says */
  close(): Promise<void>;
}

export async function startGateway(serviceUrl: string): Promise<Gateway> {
  const requests: { body: string; at: number }[] = [];
  const faults: GatewayFault[] = [];
  const inFlight = new Set<Promise<void>>();

  const server = createServer((request, response) => {
    const handle = async () => {
      const body = await text(request);
      requests.push({ body, at: performance.now() });
      const fault = faults.shift();
      if (typeof fault === 'object') {
        const { status, retryAfter, body = '', isCut } = fault;
        response.writeHead(status, {
          ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
          ...(isCut && { 'content-length': '100' }),
        });
        if (isCut) response.write(body, () => response.destroy());
        else response.end(body);
        return;
      }
      const { authorization = '', 'content-type': type = '' } = request.headers;
      const forwarded = await fetchDocumented(serviceUrl + request.url!, {
        method: request.method!,
        headers: { authorization, 'content-type': type },
        body,
      });
      const content = await forwarded.text();
      if (fault === 'lost') {
        response.destroy();
        return;
      }
      if (fault === 'cut') {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
        response.write(content.slice(0, 5), () => response.destroy());
        return;
      }
      gateway.onResponse(forwarded.status);
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      const retryAfter = forwarded.headers.get('retry-after');
      if (retryAfter !== null) headers['retry-after'] = retryAfter;
      response.writeHead(forwarded.status, headers).end(content);
    };
    const handled = handle()
      .catch((error: unknown) => {
        response.destroy();
        noResponse(error);
      })
      .then(() => void inFlight.delete(handled));
    inFlight.add(handled);
  });
  const opened = await startServer(server);

  const gateway: Gateway = {
    url: opened.url,
    requests,
    faults,
    onResponse: () => undefined,
    async close() {
      await opened.close();
      await Promise.all(inFlight);
    },
  };
  return gateway;
}
