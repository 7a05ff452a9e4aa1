import { describeSample, example } from './sample.js';

describeSample('store-plant.js', {
  command: () => [process.execPath, example('store-plant.js')],
});

describeSample('store-plant.js, without JSON.rawJSON', {
  command: () => [
    process.execPath,
    '--import=data:text/javascript,delete JSON.rawJSON',
    example('store-plant.js'),
  ],
});
