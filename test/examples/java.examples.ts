import { execFile } from 'node:child_process';
import { delimiter } from 'node:path';
import { promisify } from 'node:util';
import { describeSample, example } from './sample.js';

/** As Debian's package libjackson2-databind-java installs it. */
const JACKSON = ['core', 'annotations', 'databind'].map(
  (name) => `/usr/share/java/jackson-${name}.jar`,
);

describeSample('StorePlant.java', {
  needs: ['javac', ...JACKSON],
  async prepare(folder) {
    const options = ['-cp', JACKSON.join(delimiter), '-d', folder];
    await promisify(execFile)('javac', [...options, example('StorePlant.java')]);
  },
  command: (folder) => ['java', '-cp', [folder, ...JACKSON].join(delimiter), 'StorePlant'],
});
