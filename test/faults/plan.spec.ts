import { describe, expect, it } from '@jest/globals';
import {
  CLUSTER_KINDS,
  isKill,
  planOfEvents,
  planOfKills,
  SERVICE_KINDS,
  shortPlan,
} from './plan.js';

describe('the short form', () => {
  it('has each fault as often as it is given', () => {
    expect(shortPlan(SERVICE_KINDS, 7).toSorted()).toEqual(SERVICE_KINDS.toSorted());
    expect(shortPlan(['kill', 'kill', 'switchover'], 7).filter(isKill)).toHaveLength(2);
  });

  it('is the same for the same seed', () => {
    expect(shortPlan(SERVICE_KINDS, 7)).toEqual(shortPlan(SERVICE_KINDS, 7));
    expect(shortPlan(SERVICE_KINDS, 7)).not.toEqual(shortPlan(SERVICE_KINDS, 8));
  });
});

describe.each([
  ['a service', SERVICE_KINDS],
  ['a cluster', CLUSTER_KINDS],
])('a plan of 1000 kills of %s', (_, all) => {
  const plan = planOfKills(all, 1000, 7);

  it('has 1000 kills, and every other fault', () => {
    expect(plan.filter(isKill)).toHaveLength(1000);
    expect(new Set(plan)).toEqual(new Set(all));
  });

  it('leaves out what this machine does not allow', () => {
    const allowed = all.filter((kind) => kind !== 'fill-disk' && kind !== 'freeze');
    expect(new Set(planOfKills(allowed, 1000, 7))).toEqual(new Set(allowed));
  });
});

it('a plan of events has that many, of every kind', () => {
  const plan = planOfEvents(CLUSTER_KINDS, 100, 7);
  expect(plan).toHaveLength(100);
  expect(new Set(plan)).toEqual(new Set(CLUSTER_KINDS));
});
