import { text } from 'node:stream/consumers';
import { StreamableFile } from '@nestjs/common';
import type { Application, NextFunction, Request, Response } from 'express';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { openConnection, readUnchecked, type RawResponse } from '../../test/setup/http/raw-http.js';
import { readConfig } from '../config/config.js';
import { toServiceError } from '../errors/error.filter.js';
import { sendError } from '../errors/send-error.js';
import { HttpAdapter } from './http-adapter.js';

const resources = useResources();

let adapter: HttpAdapter;
let port: number;

/** Opens the server of an adapter with routes of controllers. */
async function open(addRoutes = () => {}, env: Record<string, string> = {}): Promise<void> {
  adapter = new HttpAdapter(readConfig(env).http);
  const app = adapter.getInstance<Application>();
  adapter.initHttpServer();
  adapter.getHttpServer().on('request', app);
  adapter.post('/plants', echo('created'));
  adapter.get('/plants', echo('found'));
  adapter.put('/Other', echo('other'));
  adapter.get('/read', echo('read'));
  addRoutes();
  adapter.setNotFoundHandler();
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    sendError(request, response, toServiceError(error));
  });
  ({ port } = await openServer(resources, adapter.getHttpServer()));
}

const echo = (body: unknown, status?: number) => (_request: Request, response: Response) => {
  adapter.reply(response, body, status);
};

/** Sends the lines of a request without a body, and reads the response. */
async function send(...lines: string[]): Promise<RawResponse> {
  const socket = await openConnection(port);
  socket.write([...lines, '', ''].join('\r\n'));
  const [response] = await readUnchecked(socket, 1);
  if (response === undefined) throw new Error('The connection was closed without a response.');
  return response;
}

const HOST = 'Host: x';

beforeEach(() => open());

describe('a request whose route is unknown', () => {
  const NOT_FOUND = {
    error: 40400,
    message: 'There is nothing at this path; /docs describes the service.',
  };

  it.each(['/', '/plant', '/plants/', '/PLANTS', '/other', '/plants/1', '//plants', '/lat%65'])(
    'is 40400 at %s, because paths are exact',
    async (path) => {
      const response = await send(`PUT ${path} HTTP/1.1`, HOST);
      expect(response.status).toBe(404);
      expect(JSON.parse(response.body)).toEqual(NOT_FOUND);
      expect(response.headers).not.toHaveProperty('allow');
    },
  );

  it('is 40500 at a known path, and names the methods that it takes', async () => {
    const response = await send('DELETE /plants?a=b HTTP/1.1', HOST);
    expect(response).toMatchObject({ status: 405, headers: { allow: 'POST, GET, HEAD' } });
    expect(JSON.parse(response.body)).toEqual({
      error: 40500,
      message: '/plants does not support DELETE, only POST, GET and HEAD.',
    });
  });

  it('is 40500 also where a route was added last, and names each method once', async () => {
    await open(() => {
      adapter.get('/Other', echo('again'));
      adapter.put('/Other', echo('again'));
    });
    const read = await send('POST /read HTTP/1.1', HOST);
    expect(read).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
    const other = await send('POST /Other HTTP/1.1', HOST);
    expect(other).toMatchObject({ status: 405, headers: { allow: 'PUT, GET, HEAD' } });
  });

  it('is handled by no route of another path or method', async () => {
    expect(await send('POST /plants HTTP/1.1', HOST)).toMatchObject({ body: 'created' });
    expect(await send('GET /read HTTP/1.1', HOST)).toMatchObject({ body: 'read' });
    expect(await send('PUT /Other HTTP/1.1', HOST)).toMatchObject({ body: 'other' });
  });
});

describe('a response', () => {
  it.each([
    [{ name: 'Jürgen 🌿' }, undefined, 200, '{"name":"Jürgen 🌿"}'],
    [{ name: 'a' }, 201, 201, '{"name":"a"}'],
    [[1, 2], 200, 200, '[1,2]'],
  ])('with the object %j is JSON, with its status and its length in bytes', async (...values) => {
    const [body, status, expectedStatus, json] = values;
    await open(() => void adapter.get('/object', echo(body, status)));
    const response = await send('GET /object HTTP/1.1', HOST);
    expect(response.status).toBe(expectedStatus);
    expect(Buffer.from(response.body, 'latin1').toString()).toBe(json);
    expect(response.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength(json)),
    });
  });

  it.each([
    ['a text', () => 'text', 'text', 'text/html; charset=utf-8'],
    ['nothing', () => undefined, '', undefined],
    ['null', () => null, '', undefined],
    [
      'a file',
      () => new StreamableFile(Buffer.from('bytes'), { length: 5 }),
      'bytes',
      'application/octet-stream',
    ],
  ])("with %s is Nest's, with the status of the route", async (_what, make, body, type) => {
    await open(() => void adapter.get('/value', echo(make(), 203)));
    const response = await send('GET /value HTTP/1.1', HOST);
    expect(response).toMatchObject({ status: 203, body });
    expect(response.headers['content-type']).toBe(type);
  });

  it('to HEAD has the length of the body that GET would get', async () => {
    await open(() => void adapter.get('/object', echo({ a: 1 })));
    const socket = await openConnection(port);
    socket.end(`HEAD /object HTTP/1.1\r\n${HOST}\r\n\r\n`);
    expect(await text(socket)).toMatch(/^Content-Length: 7\r$/m);
  });

  it('names no software, and has no hash of its body', async () => {
    const { headers } = await send('GET /plants HTTP/1.1', HOST);
    expect(headers).not.toHaveProperty('x-powered-by');
    expect(headers).not.toHaveProperty('etag');
  });
});

describe('the address of a client', () => {
  it.each([
    [0, '192.0.2.1, 192.0.2.2, 192.0.2.3', '127.0.0.1'],
    [1, '192.0.2.1, 192.0.2.2, 192.0.2.3', '192.0.2.3'],
    [2, '192.0.2.1, 192.0.2.2, 192.0.2.3', '192.0.2.2'],
    [1, 'unknown', 'unknown'],
  ])('behind %d trusted proxies that send "%s" is %s', async (trustedProxyHops, sent, address) => {
    await open(
      () => {
        adapter.get('/ip', ({ ip }: Request, response: Response) =>
          adapter.reply(response, { ip }),
        );
      },
      { TRUSTED_PROXY_HOPS: `${trustedProxyHops}` },
    );
    const { body } = await send('GET /ip HTTP/1.1', HOST, `X-Forwarded-For: ${sent}`);
    expect(JSON.parse(body)).toEqual({ ip: address });
  });
});
