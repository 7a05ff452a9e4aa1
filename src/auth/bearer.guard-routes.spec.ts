import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startGuarded, type Guarded } from '../../test/tokens/guarded.js';
import { METRICS_SETTING, METRICS_TOKEN } from '../../test/setup/service/metrics.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ForMetricsToken } from './metrics-token.decorator.js';
import { Public } from './public.decorator.js';

const INVALID = { code: ErrorCode.tokenInvalid };
const MISSING = { code: ErrorCode.tokenMissing };
const GARDENER = expect.objectContaining({ name: 'gardener' });

let guarded: Guarded;
beforeAll(async () => {
  guarded = await startGuarded();
});
beforeEach(() => guarded.reset());
afterAll(() => guarded.close());

describe('a public route', () => {
  it('accepts everybody', async () => {
    class Open {
      @Public()
      handle(): void {}
    }
    expect(await guarded.callerOf(undefined, { controller: Open })).toBeUndefined();
    expect(await guarded.callerOf('Bearer abc', { controller: Open })).toBeUndefined();
    expect(await guarded.callerOf(`Bearer ${guarded.token}`, { controller: Open })).toBeUndefined();
  });

  it('may be public with its whole controller', async () => {
    @Public()
    class Open {
      handle(): void {}
    }
    expect(await guarded.callerOf(undefined, { controller: Open })).toBeUndefined();
  });

  it('names the caller if the verdict is cached, for the log', async () => {
    class Open {
      @Public()
      handle(): void {}
    }
    await guarded.callerOf(`Bearer ${guarded.token}`);
    expect(await guarded.callerOf(`Bearer ${guarded.token}`, { controller: Open })).toEqual(
      GARDENER,
    );
  });
});

describe('the metrics token', () => {
  class Metrics {
    @ForMetricsToken()
    handle(): void {}
  }

  it('opens a route that is made for it, without a caller', async () => {
    expect(
      await guarded.callerOf(`Bearer ${METRICS_TOKEN}`, { controller: Metrics }),
    ).toBeUndefined();
  });

  it('may be set as a hash in capital letters', async () => {
    const hash = METRICS_SETTING.METRICS_TOKEN_SHA256.toUpperCase();
    guarded.reset({ METRICS_TOKEN_SHA256: hash });
    expect(
      await guarded.callerOf(`Bearer ${METRICS_TOKEN}`, { controller: Metrics }),
    ).toBeUndefined();
  });

  it('opens no other route', async () => {
    expect(await guarded.callerOf(`Bearer ${METRICS_TOKEN}`)).toMatchObject(INVALID);
  });

  it('does not close its route for other valid tokens', async () => {
    expect(await guarded.callerOf(`Bearer ${guarded.token}`, { controller: Metrics })).toEqual(
      GARDENER,
    );
  });

  it.each([
    ['no token', undefined, MISSING],
    ['another token', 'Bearer scrape-you', INVALID],
  ])('is not replaced by %s', async (_kind, header, refusal) => {
    expect(await guarded.callerOf(header, { controller: Metrics })).toMatchObject(refusal);
  });

  it('does not exist unless its hash is set', async () => {
    guarded.reset({ METRICS_TOKEN_SHA256: '' });
    const refusal = await guarded.callerOf(`Bearer ${METRICS_TOKEN}`, { controller: Metrics });
    expect(refusal).toMatchObject(INVALID);
  });
});
