import { readFileSync } from 'node:fs';
import process from 'node:process';

/**
 * Prints how the last run of Stryker decided its mutants, and fails when assertions detect less of those that no limit and no
 * error decides.
 */
const LEAST_SHARES = { all: 0.9, cli: 0.3 };

/** The commands and the process of a worker have end-to-end tests, which the run leaves out. So `all` does not count these. */
const NOT_IN_ALL = ['cli'];

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

const emptyRow = () => Object.fromEntries(COLUMNS.map((column) => [column, 0]));

const { files } = JSON.parse(readFileSync('test/mutation/results/mutation.json', 'utf8'));
const folders = {};
const all = emptyRow();
for (const [file, { mutants }] of Object.entries(files)) {
  const folder = file.split('/')[1];
  folders[folder] ??= emptyRow();
  for (const column of mutants.map(columnOf).filter((it) => it !== undefined)) {
    folders[folder][column]++;
    if (!NOT_IN_ALL.includes(folder)) all[column]++;
  }
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
for (const [name, row] of [...Object.entries(folders).sort(), ['all', all]]) {
  const total = COLUMNS.reduce((sum, column) => sum + row[column], 0);
  const byAssertion = row.assertion / (row.assertion + row.survived + row['not covered']);
  process.stdout.write(
    `${name}: ${COLUMNS.map((column) => `${row[column]} ${column}`).join(', ')}; assertions detect ` +
      `${percent(byAssertion)} of the mutants that no limit and no error decides, and ${percent(row.assertion / total)} of ${total}\n`,
  );
  if (byAssertion < LEAST_SHARES[name]) {
    process.stdout.write(`That is less than ${percent(LEAST_SHARES[name])}.\n`);
    process.exitCode = 1;
  }
}
