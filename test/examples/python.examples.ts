import { describeSample, example } from './sample.js';

describeSample('store_plant.py', {
  needs: ['python3'],
  command: () => ['python3', example('store_plant.py')],
});
