import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { end, startOn, stopUnderLoad } from '../setup/service/built-service.js';
import { startCollector, type Collector } from '../setup/http/collector.js';
import type { Command } from '../setup/process/command.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { startDatabaseProxy, type DatabaseProxy } from '../setup/database/database-proxy.js';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { metricIn, METRICS_SETTING, METRICS_TOKEN, readMetrics } from '../setup/service/metrics.js';
import {
  CHUNKED,
  beginPlant,
  openConnection,
  plantHead,
  readResponses,
  sendRaw,
} from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';
import { createToken } from '../setup/service/tokens.js';
import { until } from '../setup/time/until.js';

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

describe('logs and traces of a running service', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  let collector: Collector;
  let service: Command;
  let url: string;
  let token: string;

  beforeAll(async () => {
    database = await openTestDatabase();
    proxy = await startDatabaseProxy(database.url);
    collector = await startCollector();
    token = await createToken(database.url, 'greenhouse');
    ({ command: service, url } = await start());
  });
  afterAll(async () => {
    await end(service);
    await collector.close();
    await proxy.close();
    await database.close();
  });

  const start = () =>
    startOn(proxy.url, {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      SHUTDOWN_TIMEOUT_MS: '600000',
    });

  const post = (body: string, headers: Record<string, string> = {}, path = '/plants') =>
    fetchDocumented(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      body,
    });

  /** The log entry of the request with this id; there must be only one. */
  async function entryOf(requestId: string): Promise<Record<string, unknown>> {
    await service.waitFor(new RegExp(`"requestId":"${requestId}"`));
    const lines = service.stdout.split('\n').filter((line) => line.includes(`"${requestId}"`));
    expect(lines).toHaveLength(1);
    return JSON.parse(lines[0]!) as Record<string, unknown>;
  }

  it('each request has one log entry, with the fields that an operator needs; one that is refused is no error', async () => {
    const response = await post('{"id":1,"name":"a"}', { 'x-request-id': 'order-1' });
    expect(response.headers.get('x-request-id')).toBe('order-1');
    expect(await entryOf('order-1')).toMatchObject({
      level: 'info',
      method: 'POST',
      route: '/plants',
      status: 200,
      duration: expect.any(Number),
      token: 'greenhouse',
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    await post('{}', { 'x-request-id': 'order-2' });
    expect(await entryOf('order-2')).toMatchObject({ level: 'info', status: 400, error: 40005 });
  });

  it.each(['live', 'ready'])('the probe %s has a log entry, too', async (probe) => {
    const route = `/health/${probe}`;
    await fetchDocumented(url + route, { headers: { 'x-request-id': probe } });
    expect(await entryOf(probe)).toMatchObject({ level: 'info', route, status: 200 });
  });

  it('a request that cannot be parsed has a log entry with the id in its response, and without its bytes, with the token among them', async () => {
    const request = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nbroken\r\n\r\n`;
    const { headers } = await sendRaw(Number(new URL(url).port), request);
    expect(await entryOf(headers['x-request-id']!)).toMatchObject({
      route: 'unparsed',
      status: 400,
      error: 40000,
    });
    const secret = token.slice('plantstore_'.length);
    expect(service.stdout + service.stderr).not.toContain(secret);
    expect(service.stdout).not.toContain(Buffer.from(secret).toString('hex'));
    expect(service.stdout).not.toContain([...Buffer.from(secret)].join());
  });

  it('in an outage, each log entry has the cause in a line, and another one says when the database is back', async () => {
    proxy.cut();
    await post('{"id":2,"name":"b"}', { 'x-request-id': 'outage' });
    proxy.restore();
    const entry = await entryOf('outage');
    expect(entry).toMatchObject({
      level: 'error',
      status: 503,
      error: 50300,
      msg: 'request',
      cause: expect.stringMatching(/^.+$/),
    });
    expect(entry).not.toHaveProperty('err');
    const isBack = () => service.stdout.includes('"msg":"The database is available again."');
    expect(isBack()).toBe(false);
    await post('{"id":2,"name":"b"}', { 'x-request-id': 'afterwards' });
    await until(isBack);
  });

  it('a service that is not ready says why in its log alone', async () => {
    const probe = async () => {
      const headers = { 'x-request-id': 'not-ready' };
      return (await fetchDocumented(`${url}/health/ready`, { headers })).text();
    };
    await database.query('ALTER TABLE access_tokens RENAME TO hidden');
    await until(async () => (await probe()) !== '{"status":"ok"}');
    expect(await probe()).not.toContain('access_tokens');
    await service.waitFor(
      /"not-ready",.*"cause":"The database lacks a table: relation \\"access_tokens\\" does not exist/,
    );
    await database.query('ALTER TABLE hidden RENAME TO access_tokens');
    await until(async () => (await probe()) === '{"status":"ok"}');
  });

  it('the log is JSON in lines, and contains no token, no body and no query', async () => {
    await post(
      '{"id":3,"name":"secretplant"}',
      { 'x-request-id': 'order-3' },
      '/plants?key=secretkey',
    );
    await entryOf('order-3');
    for (const line of service.stdout.trimEnd().split('\n'))
      expect(() => JSON.parse(line) as unknown).not.toThrow();
    const log = service.stdout + service.stderr;
    for (const secret of [token.slice(11), 'secretplant', 'secretkey'])
      expect(log).not.toContain(secret);
  });

  it('on a database server, the start makes and prints no token', async () => {
    const tokens = await database.query('SELECT name FROM access_tokens');
    expect(tokens).toEqual([{ name: 'greenhouse' }]);
    expect(service.stdout + service.stderr).not.toContain('plantstore_');
  });

  it('the spans of the request, its body and its statement belong to the trace of the client, and name the service and its version', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    await post('{"id":4,"name":"a"}', { traceparent: `00-${traceId}-b7ad6b7169203331-01` });
    const ours = () => collector.spans.filter((span) => span.traceId === traceId);
    while (ours().length < 4) await once(collector.server, 'spans');
    const root = ours().find((span) => span.name === 'POST /plants');
    expect(root?.parentSpanId).toBe('b7ad6b7169203331');
    for (const name of ['body', 'store']) {
      expect(ours().find((span) => span.name === name)?.parentSpanId).toBe(root!.spanId);
    }
    for (const [key, stringValue] of [
      ['service.name', 'plant-store'],
      ['service.version', version],
    ]) {
      expect(collector.attributes).toContainEqual({ key, value: { stringValue } });
    }
  });

  it('the spans of the requests that were in flight are sent when the service stops', async () => {
    const body = '{"id":5,"name":"a"}';
    const traceId = '1'.repeat(32);
    const stopping = await start();
    const socket = await openConnection(Number(new URL(stopping.url).port));
    const parent = `Traceparent: 00-${traceId}-${'2'.repeat(16)}-01`;
    await beginPlant(socket, token, body, [parent]);
    const stopped = stopUnderLoad(stopping);
    await stopping.command.waitFor(/stops: it received SIGTERM/);
    socket.write(body);
    expect(await readResponses(socket)).toMatchObject([{ status: 200 }]);
    socket.destroy();
    await stopped;
    const spans = collector.spans.filter((span) => span.traceId === traceId);
    const names = spans.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['POST /plants', 'body', 'store', 'postgres']));
    expect(spans.flatMap(({ attributes }) => attributes)).toContainEqual({
      key: 'db.query.text',
      value: { stringValue: expect.stringContaining('INSERT INTO plants') },
    });
  });
});

describe('metrics', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService(METRICS_SETTING);
  });
  afterAll(() => service.close());

  const metrics = () => readMetrics(service.url, service.token);

  /** The value of a series; 0 if it does not exist. */
  const value = async (series: string) => metricIn(await metrics(), series) ?? 0;

  it('requests are measured by route, method, status and operation', async () => {
    const series =
      'plant_store_http_request_duration_seconds_count{route="/plants",method="POST",status="400",operation="createPlant"}';
    const before = await value(series);
    await service.post('{}');
    expect(await value(series)).toBe(before + 1);
  });

  it('unknown paths and methods share one label', async () => {
    for (const path of ['/a', '/b', '/c']) await service.request(path, { method: 'DELETE' });
    expect(
      await value(
        'plant_store_http_request_duration_seconds_count{route="unmatched",method="other",status="404",operation=""}',
      ),
    ).toBe(3);
  });

  it('have values of the database, the tokens, the batches and the process', async () => {
    await service.post('{"id":1,"name":"a"}');
    for (const series of [
      'plant_store_database_connections{state="idle"}',
      'plant_store_token_checks_total{outcome="cached"}',
      'plant_store_batch_size_count',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_p99_seconds',
    ])
      expect([series, (await value(series)) > 0]).toEqual([series, true]);
  });

  it('an incomplete request is counted once, with the status that its client got', async () => {
    const name = 'plant_store_http_request_duration_seconds_count';
    const counts = async () => [
      await value(`${name}{route="/plants",method="POST",status="400",operation="createPlant"}`),
      await value(`${name}{route="/plants",method="POST",status="499",operation="createPlant"}`),
    ];
    const [refused, gone] = await counts();
    const { status } = await sendRaw(
      service.port,
      plantHead(service.token, ['Content-Type: application/json', CHUNKED]) + 'zz\r\n',
    );
    expect(status).toBe(400);
    expect(await counts()).toEqual([refused! + 1, gone]);
  });

  const dashboard = readFileSync('deploy/grafana/dashboards/plant-store.json', 'utf8');

  /** The metrics of the service that a file names, without the suffixes of histograms. */
  const metricsIn = (text: string) => {
    const names = text.match(/plant_store_[a-z_]+/g) ?? [];
    return [...new Set(names.map((name) => name.replace(/_(bucket|sum|count)$/, '')))].sort();
  };

  it('have the version', async () => {
    expect(await metrics()).toContain(`\nplant_store_build_info{version="${version}"} 1\n`);
  });

  it('are all on the dashboard; the dashboard, the alerts and their documentation use no others', async () => {
    const types = (await metrics()).match(/^# TYPE plant_store_.*$/gm)!.join('\n');
    const exported = metricsIn(types);
    expect(metricsIn(dashboard)).toEqual(exported);
    for (const file of ['deploy/prometheus/alerts.yml', 'docs/monitoring.md']) {
      const used = metricsIn(readFileSync(file, 'utf8'));
      expect(exported).toEqual(expect.arrayContaining(used));
    }
  });

  it('have the unit of their name on the dashboard', () => {
    const { panels } = JSON.parse(dashboard) as {
      panels: {
        title: string;
        fieldConfig: { defaults: { unit: string } };
        targets: { expr: string }[];
      }[];
    };
    const unitOf = ([target]: { expr: string }[]) => {
      const { expr } = target!;
      if (/^histogram_quantile.*_seconds_bucket/.test(expr)) return 's';
      return /_bytes\b/.test(expr) ? 'bytes' : undefined;
    };
    const measured = panels.filter(({ targets }) => unitOf(targets) !== undefined);
    expect(measured).not.toEqual([]);
    for (const { title, fieldConfig, targets } of measured)
      expect([title, fieldConfig.defaults.unit]).toEqual([title, unitOf(targets)]);
  });

  it('have a bucket at the threshold of each alert on a quantile, and wherever its tests have one', async () => {
    await service.post('{"id":1,"name":"a"}');
    const dir = 'deploy/prometheus';
    const { groups } = parse(readFileSync(`${dir}/alerts.yml`, 'utf8')) as {
      groups: { rules: { expr: string }[] }[];
    };
    const thresholds = groups
      .flatMap(({ rules }) => rules.map(({ expr }) => expr))
      .filter((expr) => expr.includes('histogram_quantile'))
      .map((expr) => / > ([\d.]+)\s*$/.exec(expr)![1]);
    expect(thresholds).not.toEqual([]);
    const bounds = (text: string) => [...text.matchAll(/\ble="([^"]+)"/g)].map(([, le]) => le);
    const tested = readdirSync(dir)
      .filter((file) => file.endsWith('.test.yml'))
      .flatMap((file) => bounds(readFileSync(`${dir}/${file}`, 'utf8')));
    const series = /^plant_store_http_request_duration_seconds_bucket.*$/gm;
    const exported = bounds((await metrics()).match(series)!.join('\n'));
    expect(exported).toEqual(expect.arrayContaining([...thresholds, ...tested]));
  });

  it('contain no token', async () => {
    expect(await metrics()).not.toContain('plantstore_');
  });

  it('can be read with a token that is valid for nothing else, also while the database is away', async () => {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
    service.proxy.cut();
    const scraped = await service.request('/metrics', { headers });
    expect(scraped.status).toBe(200);
    expect(scraped.headers.get('cache-control')).toBe('no-store');
    const wrong = { authorization: 'Bearer other' };
    for (const init of [{}, { headers: wrong }])
      expect(await service.request('/metrics', init)).toMatchObject({ status: 401 });
    service.proxy.restore();
    expect(await service.post('{"id":1,"name":"a"}', headers)).toMatchObject({
      status: 401,
      body: { error: 40101 },
    });
  });
});

it('connections that are more than the service accepts are closed, and counted', async () => {
  const service = await startService({ MAX_CONNECTIONS: '2' });
  const authorization = `Bearer ${service.token}`;
  try {
    const scraper = await openConnection(service.port);
    const other = await openConnection(service.port);
    const refused = await openConnection(service.port);
    refused.on('error', () => undefined);
    await new Promise((resolve) => refused.once('close', resolve).resume());
    scraper.write(`GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`);
    const [response] = await readResponses(scraper, 1);
    expect(response!.body).toContain('plant_store_connections_dropped_total 1');
    scraper.destroy();
    other.destroy();
  } finally {
    await service.close();
  }
});
