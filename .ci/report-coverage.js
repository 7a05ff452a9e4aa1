// Prints the lines and branches that no test ran: of the unit tests, and of the processes of all other tests.
import { readFileSync } from 'node:fs';
import coverage from 'istanbul-lib-coverage';
import report from 'istanbul-lib-report';
import reports from 'istanbul-reports';

const coverageMap = coverage.createCoverageMap();
for (const folder of ['unit', 'processes']) {
  coverageMap.merge(JSON.parse(readFileSync(`coverage/${folder}/coverage-final.json`, 'utf8')));
}
reports.create('text', { maxCols: 120 }).execute(report.createContext({ coverageMap }));
