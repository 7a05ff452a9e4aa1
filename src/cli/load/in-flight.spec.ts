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
  /** Sets the clock ahead, and lets admitted requests be recorded. */
  const pass = (milliseconds: number) => jest.advanceTimersByTimeAsync(milliseconds);

  async function expectAdmissionAfter(milliseconds: number): Promise<void> {
    enter('a');
    await pass(milliseconds - 1);
    expect(admitted).toEqual([]);
    await pass(1);
    expect(admitted).toEqual(['a']);
  }

  it('admits nothing before as many seconds have passed as the service asked for', async () => {
    inFlight.pause(7);
    await expectAdmissionAfter(7000);
  });

  it('ends a pause no earlier because the service asks for a shorter one', async () => {
    inFlight.pause(7);
    await pass(1000);
    inFlight.pause(1);
    await expectAdmissionAfter(6000);
  });

  it('ends a pause later because the service asks for a longer one', async () => {
    inFlight.pause(1);
    await pass(500);
    inFlight.pause(7);
    await expectAdmissionAfter(7000);
  });

  it('admits one for each that left, in their order', async () => {
    for (const name of ['1', '2', '3', '4', '5', '6', '7', '8', 'new', 'newer']) enter(name);
    enter('repeat');
    await pass(0);
    expect(admitted).toHaveLength(8);
    for (const _freed of [1, 2, 3]) inFlight.leave();
    await pass(0);
    expect(admitted.slice(8)).toEqual(['new', 'newer', 'repeat']);
  });

  describe('while more plants wait than it admits', () => {
    let accepted: number;

    beforeEach(() => {
      accepted = 0;
      for (let i = 0; i < 1000; i++) enter('plant');
    });

    /** @returns how many requests are in flight after the service has accepted `count` more */
    const accept = async (count: number) => {
      for (let i = 0; i < count; i++) {
        inFlight.grow();
        inFlight.leave();
      }
      accepted += count;
      await pass(0);
      return admitted.length - accepted;
    };

    it('admits one more for each request that the service accepts, up to 256', async () => {
      expect(await accept(0)).toBe(8);
      expect(await accept(1)).toBe(9);
      expect(await accept(246)).toBe(255);
      expect(await accept(100)).toBe(256);
    });

    it('admits half as many after a refusal, then one more for some 16 times as many that the service accepts', async () => {
      expect(await accept(8)).toBe(16);
      inFlight.pause(1);
      await pass(1000);
      expect(await accept(8)).toBe(8);
      expect(await accept(16 * 7)).toBe(8);
      expect(await accept(16 * 2)).toBe(9);
    });

    it('is halved once for requests that are refused together', async () => {
      /** @returns how many requests are in flight after the service has refused all of them */
      const refuse = async (count: number) => {
        for (let i = 0; i < count; i++) {
          inFlight.pause(1);
          inFlight.leave();
        }
        const before = admitted.length;
        await pass(1000);
        return admitted.length - before;
      };
      expect(await accept(0)).toBe(8);
      expect(await refuse(8)).toBe(4);
      expect(await refuse(4)).toBe(2);
    });
  });
});
