import { describeSample, example } from './sample.js';

describeSample('store-plant.sh', {
  needs: ['curl'],
  command: () => ['sh', example('store-plant.sh')],
  argumentsOf: ({ id, ...plant }) => [
    JSON.stringify({ id: null, ...plant, tag: plant.tag ?? undefined }).replace('null', id!),
  ],
});
