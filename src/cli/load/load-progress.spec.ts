import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LoadProgress } from './load-progress.js';

const SIZE = 1_000_000;

describe('LoadProgress', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  const start = (size: number | undefined, columns = 80, isTTY = true) => {
    const stderr = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY, columns });
    const progress = new LoadProgress(stderr, size);
    let end = 0;
    return {
      progress,
      /** One response in each hundredth of a second. */
      load: (seconds: number, bytesASecond: number): void => {
        for (let i = 0; i < 100 * seconds; i++) {
          end += bytesASecond / 100;
          progress.reached({ line: 1, end });
          progress.settled(i % 10 === 0 ? 'refused' : 'stored');
          jest.advanceTimersByTime(10);
        }
      },
      /** The states that were written since the last call. */
      states: (): string[] =>
        String(stderr.read() ?? '')
          .replaceAll('\n', '\u001b')
          .split('\u001b')
          .map((text) => text.replace(/^(?:\[\??\d+[A-Za-z]|[78])/, ''))
          .filter((state) => state !== ''),
    };
  };

  it('is written four times a second, with a steady time left', () => {
    const { load, states } = start(SIZE);
    load(20, 10_000);
    states();
    load(40, 10_000);
    const left = states().map((state) => Number(/, (\d+) s left, /.exec(state)![1]));
    expect(left).toHaveLength(160);
    left.forEach((seconds, i) => expect(Math.abs(seconds - (80 - i / 4))).toBeLessThan(2));
  });

  it('shows the final count last', () => {
    const { progress, load, states } = start(SIZE);
    load(100, 10_000);
    progress.stop();
    expect(states().at(-1)).toBe(
      '========== 9,000 stored, 1,000 refused, 0 s left, 100 %, 100 a second',
    );
  });

  it('shows no time left while the service is waited for, and a correct one after an hour', () => {
    const { progress, load, states } = start(SIZE);
    load(50, 10_000);
    states();
    progress.waitingFor = '50300: The database is away.';
    jest.advanceTimersByTime(3_600_000);
    expect(states()).toEqual([
      '=====----- 4,500 stored, 500 refused, waiting: 50300: The database is away.',
    ]);
    progress.waitingFor = '';
    load(1, 10_000);
    expect(states().at(-1)).toMatch(/, 51 s left, 51 %, 96 a second$/);
  });

  it('shows no time left for input of unknown size', () => {
    const { load, states } = start(undefined);
    load(10, 10_000);
    expect(states().at(-1)).toMatch(/^\d+ stored, \d+ refused, 100 a second$/);
  });

  it.each([
    [100, '=====----- 9,000,000 stored, 1,000,000 refused, 2 min left, 50 %, 83,333 a second'],
    [80, '=====----- 9,000,000 stored, 1,000,000 refused, 2 min left, 50 %'],
    [40, '9,000,000 stored, 1,000,000 refused'],
    [20, '9,000,000 stored'],
  ])('fits into %d columns', (columns, state) => {
    const { progress, states } = start(SIZE, columns);
    progress.stored = 8_999_940;
    progress.refused = 1_000_000;
    for (let i = 0; i < 60; i++) {
      jest.advanceTimersByTime(2000);
      progress.settled('stored');
    }
    progress.reached({ line: 1, end: SIZE / 2 });
    jest.advanceTimersByTime(250);
    expect(states().at(-1)).toBe(state);
    progress.waitingFor = '50300: The database is away. Try again later, or ask its operator.';
    jest.advanceTimersByTime(250);
    expect(states().at(-1)).toHaveLength(columns);
    progress.stop();
    expect(states().at(-1)).toBe(state);
  });

  it('is a line every five seconds without a terminal', () => {
    const { progress, load, states } = start(SIZE, 80, false);
    load(10, 50_000);
    progress.stop();
    expect(states()).toEqual([
      expect.stringMatching(/^450 stored, 50 refused, 15 s left, 2[45] %, 100 a second$/),
      expect.stringMatching(/^900 stored, 100 refused, 10 s left, (50|49) %, 100 a second$/),
    ]);
  });

  it('ends with a summary, with the seconds since the start', () => {
    const { progress, load } = start(SIZE);
    load(61, 10_000);
    jest.advanceTimersByTime(400);
    expect(progress.summary).toBe('5,490 plants stored, 610 lines refused, in 61.4 s');
    progress.stop();
  });
});
