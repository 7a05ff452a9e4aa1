import { describeSample, example } from './sample.js';

describeSample('store-plant.js', {
  command: () => [process.execPath, example('store-plant.js')],
});
