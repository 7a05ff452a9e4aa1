import { argumentsOf, describeSample, example } from './sample.js';

const SAMPLE = example('store-plant.js');

describeSample('store-plant.js', {
  command: (plant) => [process.execPath, SAMPLE, ...argumentsOf(plant)],
});

describeSample('store-plant.js, without JSON.rawJSON', {
  command: (plant) => [
    process.execPath,
    '--import=data:text/javascript,delete JSON.rawJSON',
    SAMPLE,
    ...argumentsOf(plant),
  ],
});
