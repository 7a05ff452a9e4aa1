import { errors, type CompactJWSHeaderParameters } from 'jose';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { holdClock } from '../../test/setup/time/clock.js';
import { startIssuer, type Issuer } from '../../test/setup/http/issuer.js';
import { holdTimers } from '../../test/setup/time/held-timers.js';
import { until } from '../../test/setup/time/until.js';
import { issuerUnavailable, overloaded } from '../errors/errors.js';
import { IssuerKeys } from './issuer-keys.js';

const METADATA = '/.well-known/openid-configuration';
const KEYS = '/keys';
const MAX_AGE_MS = 5 * 60_000;
const HOUR_MS = 3_600_000;

const UNAVAILABLE = { code: issuerUnavailable.code };
const because = (message: unknown) => ({ ...UNAVAILABLE, cause: { message } });

describe('the keys of an issuer', () => {
  let issuer: Issuer;
  let keys: IssuerKeys;
  const advance = holdClock();

  beforeEach(async () => {
    issuer = await startIssuer('ES256');
    holdTimers();
    keys = new IssuerKeys(issuer.url);
  });
  afterEach(async () => {
    jest.useRealTimers();
    await issuer.close();
  });

  const find = async (header: CompactJWSHeaderParameters) => {
    await keys.issuer();
    return keys.find(header, { payload: '', signature: '' });
  };
  const headerOf = ({ publicJwk: { alg, kid } }: Issuer) => ({ alg: alg!, kid: kid! });
  const findKey = () => find(headerOf(issuer));
  const findUnknown = () => find({ alg: 'ES256', kid: 'unknown' });

  const KEY = { type: 'public', algorithm: { name: 'ECDSA' } };

  it('are found where its metadata says, and requested once for many tokens', async () => {
    issuer.documents['/elsewhere'] = issuer.documents[KEYS];
    issuer.documents[METADATA] = { issuer: issuer.url, jwks_uri: `${issuer.url}/elsewhere` };
    delete issuer.documents[KEYS];
    for (let i = 0; i < 3; i++) expect(await findKey()).toMatchObject(KEY);
    expect(issuer.requests).toBe(2);
  });

  it.each(['', METADATA, `${METADATA}/`])(
    'are found if the setting is the URL of the issuer and %j, with the name that the metadata give it',
    async (end) => {
      for (const name of [issuer.url, `${issuer.url}/`]) {
        issuer.documents[METADATA] = { issuer: name, jwks_uri: issuer.url + KEYS };
        keys = new IssuerKeys(issuer.url + end);
        expect(await findKey()).toMatchObject(KEY);
        expect(await keys.issuer()).toBe(name);
      }
    },
  );

  it.each<[string, (url: string) => object | null]>([
    ['name another issuer', () => ({ issuer: 'https://example.org' })],
    ['name an issuer whose name is longer', (url) => ({ issuer: `${url}0` })],
    ['name several issuers', (url) => ({ issuer: [url] })],
    ['are null', () => null],
  ])(
    'are not accepted from metadata that %s: they do not name this issuer',
    async (_kind, write) => {
      const jwks_uri = `${issuer.url}${KEYS}`;
      const metadata = write(issuer.url);
      issuer.documents[METADATA] = metadata && { jwks_uri, ...metadata };
      await expect(findKey()).rejects.toMatchObject(
        because(expect.stringContaining(`OIDC_ISSUER is "${issuer.url}", but`)),
      );
    },
  );

  it('are unavailable when the issuer reports an error, whose status the cause has for the log', async () => {
    issuer.setDown(true);
    await expect(findKey()).rejects.toMatchObject(
      because(`${issuer.url}${METADATA} responded with HTTP status 500`),
    );
  });

  it.each([
    ['metadata', METADATA, 1],
    ['keys', KEYS, 2],
  ])(
    'are unavailable if the issuer does not send its %s within three seconds',
    async (_what, path, requests) => {
      const timer = new AbortController();
      const timeout = jest.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(timer.signal);
      issuer.hold(path);
      const key = findKey();
      expect(timeout).toHaveBeenLastCalledWith(3000);
      await until(() => issuer.requests === requests);
      timer.abort(new DOMException('', 'TimeoutError'));
      await expect(key).rejects.toMatchObject(UNAVAILABLE);
    },
  );

  it.each<[string, unknown]>([
    ['an empty set', { keys: [] }],
    ['null', null],
    ['a good key and something else', { keys: [{ kty: 'RSA', n: 'AQAB', e: 'AQAB' }, null] }],
    ['only shared secrets', { keys: [{ kty: 'oct', k: 'AQAB' }] }],
    ['only keys for encryption', { keys: [{ kty: 'RSA', use: 'enc', n: 'AQAB', e: 'AQAB' }] }],
    ['no JSON', undefined],
  ])('stay when the issuer sends %s: that says nothing about a token', async (_kind, keySet) => {
    await findKey();
    issuer.documents[KEYS] = keySet;
    await advance(1000);
    await expect(findUnknown()).rejects.toMatchObject(UNAVAILABLE);
    expect(await findKey()).toMatchObject(KEY);
  });

  it.each(['http://192.0.2.1/keys', 'data:application/json,{}', '/keys'])(
    'are not fetched from %s: anybody on the way could replace them',
    async (jwks_uri) => {
      issuer.documents[METADATA] = { issuer: issuer.url, jwks_uri };
      await expect(findKey()).rejects.toMatchObject(
        because(`The jwks_uri in ${issuer.url}${METADATA} is not an https:// address`),
      );
    },
  );

  it('are not requested again for a second after a failure', async () => {
    issuer.setDown(true);
    await expect(findKey()).rejects.toMatchObject(UNAVAILABLE);
    issuer.setDown(false);
    await advance(999);
    await expect(findKey()).rejects.toMatchObject(UNAVAILABLE);
    expect(issuer.requests).toBe(1);
    await advance(1);
    expect(await findKey()).toMatchObject(KEY);
  });

  it('a token of a new key waits for the next request to the issuer, at most a second', async () => {
    await findKey();
    await issuer.rotateKey();
    await advance(999);
    expect(await findKey()).toMatchObject(KEY);
  });

  // jose, which caches the keys, reads the date.
  it('stay while the issuer cannot be reached, also if the date is set ahead', async () => {
    await findKey();
    await advance.changeDate(HOUR_MS);
    await advance(1000);
    issuer.setDown(true);
    expect(await findKey()).toMatchObject(KEY);
  });

  it('are requested again every five minutes: one that was withdrawn is not used any longer', async () => {
    const withdrawn = headerOf(issuer);
    await findKey();
    await issuer.rotateKey();
    await advance(MAX_AGE_MS);
    jest.advanceTimersByTime(MAX_AGE_MS - 1);
    expect(await find(withdrawn)).toMatchObject(KEY);
    expect(issuer.requests).toBe(2);
    jest.advanceTimersByTime(1);
    await until(() => issuer.requests === 4);
    expect(await findKey()).toMatchObject(KEY);
    await advance(1000);
    await expect(find(withdrawn)).rejects.toThrow(errors.JWKSNoMatchingKey);
  });

  it('are used longer while the issuer cannot be reached, and requested again every ten seconds until it responds', async () => {
    const withdrawn = headerOf(issuer);
    await findKey();
    await issuer.rotateKey();
    issuer.setDown(true);
    await advance(MAX_AGE_MS);
    jest.advanceTimersByTime(MAX_AGE_MS);
    await until(() => issuer.requests === 3);
    expect(await find(withdrawn)).toMatchObject(KEY);
    await expect(findKey()).rejects.toMatchObject(UNAVAILABLE);
    issuer.setDown(false);
    await advance(1000);
    jest.advanceTimersByTime(10_000);
    await until(() => issuer.requests === 5);
    expect(await findKey()).toMatchObject(KEY);
    await advance(1000);
    await expect(find(withdrawn)).rejects.toThrow(errors.JWKSNoMatchingKey);
  });

  it('at most 1000 tokens wait for the first keys', async () => {
    const release = issuer.hold();
    const waiting = Array.from({ length: 1000 }, async () => findKey());
    await expect(findKey()).rejects.toMatchObject({ code: overloaded.code });
    release();
    expect((await Promise.all(waiting))[999]).toMatchObject(KEY);
  });

  it('at most 1000 tokens wait for an unknown key', async () => {
    await findKey();
    await advance(1000);
    const release = issuer.hold();
    const waiting = Array.from({ length: 1000 }, async () => findUnknown());
    await expect(findUnknown()).rejects.toMatchObject({ code: overloaded.code });
    expect(await findKey()).toMatchObject(KEY);
    release();
    const reasons = await Promise.allSettled(waiting);
    expect(reasons[999]).toMatchObject({ reason: expect.any(errors.JWKSNoMatchingKey) });
  });
});
