import { argumentsOf, describeSample, example } from './sample.js';

describeSample('store_plant.py', {
  needs: ['python3'],
  command: (plant) => ['python3', example('store_plant.py'), ...argumentsOf(plant)],
});
