import { createHash } from 'node:crypto';
import { fetchDocumented } from '../http/fetch-documented.js';

/** A token that may only read metrics. */
export const METRICS_TOKEN = 'scrape-me';

/** The setting with which a service accepts this token. */
export const METRICS_SETTING = {
  METRICS_TOKEN_SHA256: createHash('sha256').update(METRICS_TOKEN).digest('hex'),
};

/**
 * Reads a metric of a service.
 *
 * @param state the label of a gauge that has several
 * @returns undefined if there is no such metric
 */
export async function metricAt(
  url: string,
  name: string,
  { state, token = METRICS_TOKEN }: { state?: string | undefined; token?: string } = {},
): Promise<number | undefined> {
  return metricIn(await readMetrics(url, token), name, state);
}

/** Reads all metrics of a service. */
export async function readMetrics(url: string, token: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetchDocumented(`${url}/metrics`, { headers })).text();
}

/** @returns undefined if there is no such metric */
export function metricIn(metrics: string, name: string, state?: string): number | undefined {
  const series = state === undefined ? name : `${name}{state="${state}"}`;
  const line = metrics.split('\n').find((it) => it.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length));
}
