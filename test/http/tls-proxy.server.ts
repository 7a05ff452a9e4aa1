import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
// eslint-disable-next-line no-restricted-imports -- `fetch` takes no certificate, and readDocumented checks the responses.
import { request, type RequestOptions } from 'node:https';
import { createServer, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readDocumented } from '../setup/http/fetch-documented.js';
import { openServer } from '../setup/http/open-server.js';
import { useResources } from '../setup/jest/resources.js';
import { startSite } from './nginx.js';
import { findFreePorts } from '../setup/process/ports.js';
import { startService, type TestService } from '../setup/service/service.js';

const HOST = 'plants.example.org';

/** Browsers use no other protocol for a year. */
const TLS_ONLY = { 'strict-transport-security': 'max-age=31536000' };

describe('the TLS site for nginx', () => {
  let service: TestService;
  let dir: string;
  let ca: Buffer;
  const resources = useResources();

  beforeAll(async () => {
    service = await startService({ TRUSTED_PROXY_HOPS: '1', AUTH_FAILURES_PER_MINUTE: '1' });
    dir = await mkdtemp(join(tmpdir(), 'plant-store-tls-'));
    const files = ['-keyout', join(dir, 'privkey.pem'), '-out', join(dir, 'fullchain.pem')];
    const subject = ['-subj', `/CN=${HOST}`, '-addext', `subjectAltName=DNS:${HOST}`];
    const options = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1'];
    await promisify(execFile)('openssl', ['req', ...options, ...subject, ...files]);
    ca = await readFile(join(dir, 'fullchain.pem'));
  });
  afterAll(async () => {
    await rm(dir, { recursive: true });
    await service.close();
  });

  /** Starts nginx with the site, in front of a port. */
  async function startInFrontOf(target: number) {
    const [http, https] = (await findFreePorts(2)) as [number, number];
    await startSite(resources, dir, { http, https, instances: [target] }, (site) =>
      site.replaceAll('/etc/letsencrypt/live/plants.example.org', dir),
    );
    const post = async (body: string, headers: Record<string, string> = {}) => {
      const options: RequestOptions = {
        port: https,
        host: '127.0.0.1',
        servername: HOST,
        ca,
        path: '/plants',
        method: 'POST',
        agent: false,
        headers: {
          host: HOST,
          authorization: `Bearer ${service.token}`,
          'content-type': 'application/json',
          ...headers,
        },
      };
      const sent = request(options).end(body);
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      return response;
    };
    return { post, http, https };
  }
  const read = async (response: IncomingMessage) =>
    JSON.parse(await readDocumented(response, 'POST /anywhere')) as object;

  it('stores plants over TLS, and hides the address that a client claims to have', async () => {
    const { post } = await startInFrontOf(service.port);
    const stored = await post('{"id":9223372036854775807,"name":"a"}');
    expect(stored.statusCode).toBe(200);
    expect(stored.headers).toMatchObject({ ...TLS_ONLY, server: 'nginx' });
    stored.resume();
    const wrong = (address: string) =>
      post('{}', { authorization: 'Bearer wrong', 'x-forwarded-for': address }).then(read);
    expect(await wrong('192.0.2.1')).toMatchObject({ error: 40101 });
    expect(await wrong('192.0.2.2')).toMatchObject({ error: 42900 });
  });

  it('redirects requests without TLS for good', async () => {
    const { http } = await startInFrontOf(service.port);
    const get = ['--silent', '--header', `Host: ${HOST}`, `http://127.0.0.1:${http}/docs?a=b`];
    const format = ['--output', '/dev/null', '--write-out', '%{http_code} %{redirect_url}'];
    const { stdout } = await promisify(execFile)('curl', [...format, ...get]);
    expect(stdout).toBe(`301 https://${HOST}/docs?a=b`);
  });

  it('speaks no TLS before 1.2', async () => {
    const { https } = await startInFrontOf(service.port);
    const connectWith = (version: 'TLSv1.1' | 'TLSv1.2') => {
      // OpenSSL itself would refuse the old one at its default level of security.
      const old = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' };
      const socket = connect({ port: https, host: '127.0.0.1', servername: HOST, ca, ...old });
      return once(socket, 'secureConnect').finally(() => socket.destroy());
    };
    await expect(connectWith('TLSv1.2')).resolves.toEqual([]);
    await expect(connectWith('TLSv1.1')).rejects.toMatchObject({
      code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    });
  });

  it('passes on a header field of 12 KB, as the token of an identity provider may need', async () => {
    const { post } = await startInFrontOf(service.port);
    const stored = await post('{"id":2,"name":"a"}', { 'x-long': 'x'.repeat(12_000) });
    expect(stored.statusCode).toBe(200);
    stored.resume();
  });

  it('refuses a body that is too large, as the service does', async () => {
    const { post } = await startInFrontOf(service.port);
    const response = await post(' '.repeat(64 * 1024 + 1));
    expect(response.headers).toMatchObject(TLS_ONLY);
    expect(await read(response)).toMatchObject({ error: 40003 });
  });

  it('answers 50301 while the service is away', async () => {
    const [free] = (await findFreePorts(1)) as [number];
    const { post } = await startInFrontOf(free);
    const response = await post('{"id":1,"name":"a"}');
    expect(response.headers).toMatchObject({ 'retry-after': '1', ...TLS_ONLY });
    expect(await read(response)).toMatchObject({ error: 50301 });
  });

  it('tells the service the scheme and the host', async () => {
    const seen: object[] = [];
    const target = await openServer(
      resources,
      createServer((incoming, response) => {
        const { host, 'x-forwarded-proto': scheme, 'x-forwarded-for': address } = incoming.headers;
        seen.push({ host, scheme, address });
        response.end('{}');
      }),
    );
    const { post } = await startInFrontOf(target.port);
    (await post('{}', { 'x-forwarded-for': '192.0.2.1' })).resume();
    expect(seen).toEqual([{ host: HOST, scheme: 'https', address: '127.0.0.1' }]);
  });
});
