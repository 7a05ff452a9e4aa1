import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Report } from './report.js';
import { clock } from './times.js';

/** Only so many problems are printed; the file has all of them. */
const MAX_PRINTED = 20;

/** Writes the report as JSON. */
export async function saveReport(report: Report, file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(report, null, 2)}\n`);
}

/** @returns the outages as a table, the counts, and the result */
export function formatReport(report: Report): string {
  const { faults, targets, kills, duration, problems, result, seed, environment } = report;
  const labels = targets.map(({ label }) => label);
  const lines = ['Longest time without an acknowledgment, in seconds:', ''];
  lines.push(['at'.padStart(6), ...labels, ''].join('  '));
  for (const { at, description, outages } of faults) {
    const cells = labels.map((label) => outages[label]!.toFixed(1).padStart(label.length));
    lines.push([clock(at).padStart(6), ...cells, description].join('  '));
  }
  lines.push('');
  for (const { label, requests, acknowledged, outcomes, ...rest } of targets) {
    lines.push(
      `${label}: ${requests} requests, ${acknowledged} acknowledged, ${rest.missing} missing, ` +
        `${rest.wrong} wrong, ${rest.unacknowledged} stored without a response; ` +
        `longest time without an acknowledgment ${rest.longestOutage} s; ` +
        `slowest ${(rest.slowestMilliseconds / 1000).toFixed(1)} s; ` +
        Object.entries(outcomes)
          .map(([outcome, count]) => `${outcome}: ${count}`)
          .join(', '),
    );
  }
  const unprinted = problems.length - MAX_PRINTED;
  lines.push(
    ...report.leftOut,
    ...problems.slice(0, MAX_PRINTED),
    ...(unprinted > 0 ? [`and ${unprinted} more`] : []),
    `${faults.length} faults, ${kills} of them kills, in ${Math.round(duration)} s.`,
    `Result: ${result} (seed ${seed}, commit ${environment['commit']}).`,
  );
  return lines.join('\n');
}
