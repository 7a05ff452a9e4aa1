import fc from 'fast-check';
import type { SentPlant } from '../setup/model/contradictions.js';
import { OPTIONAL_FIELDS, present, recordOf } from '../setup/model/plant.js';

/** What happens next; `turns` of the event loop pass before it. */
export type Step = { readonly turns: number } & (
  | { readonly kind: 'send' | 'unauthorized'; readonly plant: SentPlant }
  /** The client resets the connection after some turns, and after all of the request or a part of it. */
  | {
      readonly kind: 'reset';
      readonly plant: SentPlant;
      readonly part: number;
      readonly after: number;
    }
  | { readonly kind: 'cut' | 'freeze' | 'restore' | 'restart' | 'kill' | 'settle' }
);

/** Often none, so that plants share a batch. */
const turns = fc.oneof(fc.constant(0), fc.nat(20));

/** Few, so that there are repeats and conflicts; the id is one of four. */
const plant = fc
  .record({
    id: fc.nat(3),
    name: fc.constantFrom('a', 'b'),
    ...recordOf(OPTIONAL_FIELDS, () => fc.constantFrom(undefined, '', 't')),
  })
  .map(({ id, name, ...fields }): SentPlant => ({ id, name, ...present(fields) }));

const stepWithoutEnd = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('send' as const), plant, turns }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('unauthorized' as const), plant, turns }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('reset' as const),
      plant,
      turns,
      // A third of them sends all of the request.
      part: fc.double({ min: 0, max: 1.5, noNaN: true }),
      after: fc.nat(40),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('cut', 'freeze', 'restore', 'settle'),
      turns,
    }),
  },
);

const step = fc.oneof(
  { weight: 21, arbitrary: stepWithoutEnd },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), turns }) },
);

export const anyHistory: fc.Arbitrary<Step[]> = fc.array(step, {
  minLength: 1,
  maxLength: 30,
  size: 'max',
});

const stepsWithoutEnd: fc.Arbitrary<Step[]> = fc.array(stepWithoutEnd, {
  maxLength: 12,
  size: 'max',
});

/** In this many turns, a process of its own receives requests, stores their plants and responds. */
const TURNS_OF_A_REQUEST = 2000;

const end = (...kinds: ('kill' | 'restart')[]): fc.Arbitrary<Step> =>
  fc.record({ kind: fc.constantFrom(...kinds), turns: fc.nat(TURNS_OF_A_REQUEST) });

/** With two ends, because a process needs half a second to start again. */
export const anyHistoryWithKills: fc.Arbitrary<Step[]> = fc
  .tuple(stepsWithoutEnd, end('kill'), stepsWithoutEnd, end('kill', 'restart'), stepsWithoutEnd)
  .map((parts) => parts.flat());
