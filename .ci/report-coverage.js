// Prints the lines and branches that no test ran, and fails if these are too many: unit tests, and the processes of the others.
import { readFileSync } from 'node:fs';
import process from 'node:process';
import coverage from 'istanbul-lib-coverage';
import report from 'istanbul-lib-report';
import reports from 'istanbul-reports';

const coverageMap = coverage.createCoverageMap();
for (const folder of ['unit', 'processes']) {
  coverageMap.merge(JSON.parse(readFileSync(`coverage/${folder}/coverage-final.json`, 'utf8')));
}
reports.create('text', { maxCols: 120 }).execute(report.createContext({ coverageMap }));

const LEAST_LINES = 97;
const { pct } = coverageMap.getCoverageSummary().lines;
if (pct < LEAST_LINES) {
  process.stdout.write(`The tests run ${pct} % of the lines: less than ${LEAST_LINES} %.\n`);
  process.exitCode = 1;
}
