import { readFileSync } from 'node:fs';
import process from 'node:process';

/** Prints how the last run of Stryker decided its mutants, as in docs/testing.md, and fails below this share. */
const LEAST_SHARE = 0.9;

const COLUMNS = ['assertion', 'test limit', 'run limit', 'error', 'survived', 'not covered'];

/** Stryker counts a test that waits longer than the limit of Jest as killed, like one whose assertion fails. */
const EXCEEDED = /^Error: thrown: "Exceeded timeout/;

/** @returns the column of a mutant; undefined for one that Stryker ignores */
function columnOf({ status, statusReason }) {
  if (status === 'Killed') return EXCEEDED.test(statusReason) ? 'test limit' : 'assertion';
  return {
    Timeout: 'run limit',
    RuntimeError: 'error',
    Survived: 'survived',
    NoCoverage: 'not covered',
  }[status];
}

const { files } = JSON.parse(readFileSync('test/mutation/results/mutation.json', 'utf8'));
const counts = { all: Object.fromEntries(COLUMNS.map((column) => [column, 0])) };
for (const [file, { mutants }] of Object.entries(files)) {
  const folder = file.split('/')[1];
  counts[folder] ??= Object.fromEntries(COLUMNS.map((column) => [column, 0]));
  for (const column of mutants.map(columnOf).filter((it) => it !== undefined)) {
    counts[folder][column]++;
    counts.all[column]++;
  }
}

const { all, ...folders } = counts;
for (const [name, row] of [...Object.entries(folders).sort(), ['all', all]]) {
  process.stdout.write(
    `${name}: ${COLUMNS.map((column) => `${row[column]} ${column}`).join(', ')}\n`,
  );
}
const total = COLUMNS.reduce((sum, column) => sum + all[column], 0);
const byAssertion = all.assertion / (all.assertion + all.survived + all['not covered']);
const percent = (share) => `${(100 * share).toFixed(1)} %`;
process.stdout.write(
  `Assertions detect ${percent(byAssertion)} of the mutants that no limit and no error decides, and ` +
    `${percent(all.assertion / total)} of all ${total}.\n`,
);
if (byAssertion < LEAST_SHARE) {
  process.stdout.write(`That is less than ${percent(LEAST_SHARE)}.\n`);
  process.exitCode = 1;
}
