import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startGuarded, type Guarded } from '../../test/tokens/guarded.js';
import { METRICS_SETTING, METRICS_TOKEN } from '../../test/setup/service/metrics.js';
import { untilSettled } from '../../test/setup/time/settled.js';
import {
  issuerUnavailable,
  tokenInvalid,
  tokenMissing,
  tooManyAttempts,
} from '../errors/errors.js';
import { ForMetricsToken } from './metrics-token.decorator.js';
import { Public } from './public.decorator.js';

const INVALID = { code: tokenInvalid.code };
const MISSING = { code: tokenMissing.code };
const GARDENER = expect.objectContaining({ name: 'gardener' });

let guarded: Guarded;
beforeAll(async () => {
  guarded = await startGuarded();
});
beforeEach(() => guarded.reset());
afterAll(() => guarded.close());

describe('a request to a route that is not public', () => {
  it('with a valid token is accepted, with the caller that the token names', async () => {
    expect(await guarded.callerOf(`Bearer ${guarded.token}`)).toEqual(GARDENER);
  });

  it('may have a token of many kilobytes, such as one that lists groups', async () => {
    const token = await guarded.issuer.sign({ groups: 'g'.repeat(10_000) });
    expect(token.length).toBeGreaterThan(13_000);
    expect(await guarded.callerOf(`Bearer ${token}`)).toEqual(GARDENER);
  });

  it('with a token that is in the cache is accepted without a promise', async () => {
    await guarded.callerOf(`Bearer ${guarded.token}`);
    const requests = guarded.issuer.requests;
    const exchange = await guarded.send(`Bearer ${guarded.token}`);
    expect(guarded.check(exchange)).toBe(true);
    expect(exchange.request.user).toEqual(GARDENER);
    expect(guarded.issuer.requests).toBe(requests);
  });

  it.each(['bearer', 'BEARER', 'Bearer  ', 'bEARER    '])(
    'may write the scheme and the spaces as "%s"',
    async (scheme) => {
      expect(await guarded.callerOf(`${scheme} ${guarded.token}`)).toEqual(GARDENER);
    },
  );

  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['the scheme only', 'Bearer'],
    ['the scheme and spaces', 'Bearer   '],
    ['another scheme', 'Basic YTpi'],
    ['a token without a scheme', 'abc'],
    ['a scheme and no space', 'Bearerabc'],
    ['a scheme that only ends with Bearer', 'XBearer abc'],
    ['a scheme that only begins with Bearer', 'Bearerx abc'],
    ['a tab after the scheme', 'Bearer\tabc'],
  ])('with %s is refused, because a token is missing', async (_kind, header) => {
    expect(await guarded.callerOf(header)).toMatchObject(MISSING);
  });

  it.each([
    ['is unknown', 'abc'],
    ['has a wrong checksum', `plantstore_${'0'.repeat(49)}`],
    ['is a name of Object.prototype', '__proto__'],
    ['is very long', 'x'.repeat(8000)],
    ['is two tokens', 'abc abc'],
    ['has characters that no token has', '"><script>\'; DROP TABLE'],
    ['is followed by other text', () => `${guarded.token} x`],
    ['is followed by a letter', () => `${guarded.token}x`],
    ['comes after other text', () => `x ${guarded.token}`],
    ['has a character that no token has', 'a,b'],
    ['has a character at its start that no token has', '"abc'],
    ['ends in the middle', 'a=b'],
    ['is in a list', () => `${guarded.token}, Bearer ${guarded.token}`],
  ])('with a token that %s is refused as not valid', async (_kind, text) => {
    expect(
      await guarded.callerOf(`Bearer ${typeof text === 'string' ? text : text()}`),
    ).toMatchObject(INVALID);
  });

  it('with a token in the query only is refused, because a token is missing', async () => {
    expect(
      await guarded.callerOf(undefined, { path: `/?access_token=${guarded.token}` }),
    ).toMatchObject(MISSING);
  });

  it.each([
    ['the same', (token: string) => `/?access_token=${token}`],
    ['two wrong ones', () => '/?access_token=x&access_token=y'],
  ])(
    'with a token in the header is checked by it, even if the query has %s',
    async (_kind, pathWith) => {
      const path = pathWith(guarded.token);
      expect(await guarded.callerOf(`Bearer ${guarded.token}`, { path })).toEqual(GARDENER);
      expect(await guarded.callerOf('Bearer abc', { path })).toMatchObject(INVALID);
    },
  );

  it('gets the error of a lookup that failed', async () => {
    guarded.issuer.setDown(true);
    expect(await guarded.callerOf(`Bearer ${guarded.token}`)).toMatchObject({
      code: issuerUnavailable.code,
    });
    guarded.issuer.setDown(false);
  });
});

describe('wrong tokens', () => {
  const from = (address: string) => ({ lines: [`X-Forwarded-For: ${address}`] });

  it.each([
    ['are unknown', 'abc'],
    ['have the form of no kind of token', 'x.y'],
    ['begin like an access token', 'plantstore_'],
    ['have a character that no token has', 'a,b'],
    ['begin with such a character', '"'],
    ['have a space', 'a b'],
  ])('that %s are counted for the address that sent them', async (_kind, text) => {
    for (let i = 0; i < 2; i++) {
      expect(await guarded.callerOf(`Bearer ${text}${i}`, from('192.0.2.1'))).toMatchObject(
        INVALID,
      );
    }
    const third = await guarded.callerOf(`Bearer ${text}`, from('192.0.2.1'));
    expect(third).toMatchObject({ code: tooManyAttempts.code });
    expect(await guarded.callerOf(`Bearer ${text}`, from('192.0.2.2'))).toMatchObject(INVALID);
  });

  it('may come from a client that has closed its connection', async () => {
    const exchange = await guarded.send('Bearer abc');
    exchange.client.destroy();
    await untilSettled(() => exchange.response.closed);
    await expect(guarded.check(exchange)).rejects.toMatchObject(INVALID);
  });
});

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

  it('names the caller of a token that is in the cache, for the log', async () => {
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
    class Both {
      @ForMetricsToken()
      metrics(): void {}

      handle(): void {}
    }
    expect(await guarded.callerOf(`Bearer ${METRICS_TOKEN}`)).toMatchObject(INVALID);
    expect(await guarded.callerOf(`Bearer ${METRICS_TOKEN}`, { controller: Both })).toMatchObject(
      INVALID,
    );
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
