import { expect, it } from '@jest/globals';
import { compare, History, type SentRequest } from './history.js';

it('a history has the times and the outcome of a plant, and the times of acknowledgments', async () => {
  let time = 0;
  const history = new History('Plant Store', () => ++time);
  const plant = { id: '1', name: 'a' };
  await history.record(plant, [200], () => Promise.resolve({ outcome: 200 }));
  await history.record(plant, [200], () => Promise.resolve({ outcome: 0, reason: 'ECONNRESET' }));
  expect(history.sent).toEqual([
    { ...plant, outcome: 200, expected: [200], sentAt: 1, endedAt: 2 },
    { ...plant, outcome: 0, reason: 'ECONNRESET', expected: [200], sentAt: 3, endedAt: 4 },
  ]);
  expect(history.acknowledgedAt).toEqual([2]);
});

it('a comparison counts ids that are missing, wrong, or stored without a response', () => {
  const sent = (id: string, outcome: number, name = 'a'): SentRequest => ({
    ...{ id, name, outcome, expected: [200], sentAt: 0, endedAt: 1 },
  });
  const history = [
    sent('1', 200),
    sent('2', 200),
    sent('3', 200),
    sent('4', 50300),
    sent('5', 50300),
    sent('6', 50300),
    sent('6', 200),
    // Whichever of two rivals is stored, it was sent.
    sent('7', 200),
    sent('7', 40006, 'b'),
  ];
  const rows = ['1', '4', '6', '7'].map((id) => ({ id, name: 'a' }));
  rows.push({ id: '2', name: 'other' });
  expect(compare(history, rows)).toEqual({ missing: 1, wrong: 1, unacknowledged: 1 });
});
