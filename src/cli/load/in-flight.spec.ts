import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { InFlight } from './in-flight.js';

describe('InFlight', () => {
  let inFlight: InFlight;
  let admitted: string[];

  beforeEach(() => {
    jest.useFakeTimers();
    inFlight = new InFlight();
    admitted = [];
  });
  afterEach(() => {
    inFlight.stop();
    jest.useRealTimers();
  });

  const enter = (name: string) => void inFlight.enter().then(() => admitted.push(name));
  const enterAgain = (name: string) => void inFlight.enterAgain().then(() => admitted.push(name));
  /** Sets the clock ahead, and lets admitted requests be recorded. */
  const pass = (milliseconds: number) => jest.advanceTimersByTimeAsync(milliseconds);

  it('admits nothing before as many seconds have passed as the service asked for', async () => {
    inFlight.pause(7);
    enter('a');
    await pass(6999);
    expect(admitted).toEqual([]);
    await pass(1);
    expect(admitted).toEqual(['a']);
  });

  it('ends a pause no earlier because the service asks for a shorter one', async () => {
    inFlight.pause(7);
    await pass(1000);
    inFlight.pause(1);
    enter('a');
    await pass(5999);
    expect(admitted).toEqual([]);
    await pass(1);
    expect(admitted).toEqual(['a']);
  });

  it('admits repeats before all plants that wait', async () => {
    for (const name of ['1', '2', '3', '4', '5', '6', '7', '8', 'new', 'newer']) enter(name);
    enterAgain('repeat');
    await pass(0);
    expect(admitted).toHaveLength(8);
    for (const _freed of [1, 2, 3]) inFlight.leave();
    await pass(0);
    expect(admitted.slice(8)).toEqual(['repeat', 'new', 'newer']);
  });
});
