import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { svgDocument, svgText } from './svg.js';
import { queryOnce } from '../test/setup/database/query-once.js';
import { ROOT } from '../test/setup/process/command.js';
import type { Round } from './round.js';

/** Medians over the rounds of one contender. */
interface Summary {
  readonly name: string;
  readonly perSecond: number;
  /** The speed of the slowest and of the fastest round. */
  readonly range: readonly [number, number];
  /** How many times as fast the first contender is. */
  readonly ratio: number;
  readonly p50: number;
  readonly p99: number;
  readonly processorTime: number;
}

export function summarize(rounds: readonly Round[]): Summary[] {
  const groups = Map.groupBy(rounds, ({ name }) => name);
  const summaries = [...groups].map(([name, group]) => {
    const medianOf = (key: 'perSecond' | 'p50' | 'p99' | 'processorTime') =>
      median(group.map((round) => round[key]));
    const speeds = group.map(({ perSecond }) => perSecond);
    return {
      name,
      perSecond: medianOf('perSecond'),
      range: [Math.min(...speeds), Math.max(...speeds)] as const,
      p50: medianOf('p50'),
      p99: medianOf('p99'),
      processorTime: medianOf('processorTime'),
    };
  });
  const first = summaries[0]!.perSecond;
  return summaries.map((summary) => ({ ...summary, ratio: first / summary.perSecond }));
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2;
}

/** @returns a table in Markdown */
export function formatTable(summaries: readonly Summary[], head: string): string {
  const titles = ['plants a second', 'slowest to fastest', 'ours is', 'p50', 'p99'];
  const rows = [[head, ...titles, 'processor time a request']];
  for (const { name, perSecond, range, ratio, p50, p99, processorTime } of summaries) {
    const speed = [whole(perSecond), range.map(whole).join(' to '), `× ${ratio.toFixed(2)}`];
    const times = [milliseconds(p50), milliseconds(p99), `${whole(processorTime)} µs`];
    rows.push([name, ...speed, ...times]);
  }
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const rule = widths.map((width, column) => (column === 0 ? '-' : ':').padStart(width, '-'));
  const pad = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!);
  return [rows[0]!, rule, ...rows.slice(1)]
    .map((row) => `| ${row.map(pad).join(' | ')} |`)
    .join('\n');
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function milliseconds(value: number): string {
  return `${value >= 100 ? Math.round(value) : value.toPrecision(3)} ms`;
}

/** @returns a bar for each contender, as an SVG document */
export function drawChart(summaries: readonly Summary[], captions: readonly string[]): string {
  const fastest = Math.max(...summaries.map(({ perSecond }) => perSecond));
  const title = 'Plants a second, and their latency';
  const body = [svgText(24, 38, title, 'font-weight="600" font-size="16"')];
  let top = 54;
  for (const { name, perSecond, p50, p99 } of summaries) {
    const width = Math.round((perSecond / fastest) * 340);
    const color = name === summaries[0]!.name ? '#2f9e5b' : '#8a93a6';
    const figures = `${whole(perSecond)}/s, p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)}`;
    body.push(
      svgText(230, top + 16, name, 'text-anchor="end"'),
      `<rect x="240" y="${top}" width="${width}" height="22" rx="3" fill="${color}"/>`,
      svgText(248 + width, top + 16, figures),
    );
    top += 36;
  }
  for (const caption of captions) body.push(svgText(24, (top += 18), caption, 'font-size="11"'));
  return svgDocument(880, top + 24, title, body.join('\n'));
}

/** @returns two lines that name the programs and the machine */
export async function describeEnvironment(server: string): Promise<string[]> {
  const packages = ['fastify', 'express', '@nestjs/core', 'typeorm', 'pg', 'autocannon'];
  const versions = packages.map((name) => {
    const text = readFileSync(findPackageJSON(name, import.meta.url)!, 'utf8');
    return `${name} ${(JSON.parse(text) as { version: string }).version}`;
  });
  const git = ['describe', '--always', '--dirty= with changes', '--exclude=*'];
  const { stdout } = spawnSync('git', git, { cwd: ROOT, encoding: 'utf8' });
  const [postgres] = await queryOnce<Record<'version' | 'fsync' | 'commit', string>>(
    server,
    `SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
            current_setting('synchronous_commit') AS commit`,
  );
  const { version, fsync, commit } = postgres!;
  const memory = Math.round(totalmem() / 1024 ** 3);
  return [
    `Commit ${stdout?.trim() || 'unknown'}, Node ${process.versions.node}, ${versions.join(', ')}`,
    `Postgres ${version}, fsync ${fsync}, synchronous_commit ${commit}; ${type()} ${release()}, ${availableParallelism()} cores, ${cpus()[0]!.model}, ${memory} GiB`,
  ];
}
