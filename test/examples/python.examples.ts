import { describeSample, example } from './sample.js';

/** As Debian's package python3-urllib3 installs it. */
const URLLIB3 = '/usr/lib/python3/dist-packages/urllib3';

describeSample('store_plant.py', {
  needs: ['/usr/bin/python3', URLLIB3],
  command: () => ['/usr/bin/python3', example('store_plant.py')],
});
