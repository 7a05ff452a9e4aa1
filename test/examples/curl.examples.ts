import { describeSample, example } from './sample.js';

describeSample('store-plant.sh', {
  needs: ['curl'],
  command: ({ id, name, tag }) => [
    'sh',
    example('store-plant.sh'),
    `{"id": ${id}, ${JSON.stringify({ name, tag: tag ?? undefined }).slice(1)}`,
  ],
});
