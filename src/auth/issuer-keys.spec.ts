import { errors, type CompactJWSHeaderParameters } from 'jose';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { holdClock } from '../../test/setup/clock.js';
import { startIssuer, type Issuer } from '../../test/setup/issuer.js';
import { ErrorCode } from '../errors/error-codes.js';
import { IssuerKeys } from './issuer-keys.js';

const METADATA = '/.well-known/openid-configuration';
const KEYS = '/keys';
const MAX_AGE_MS = 5 * 60_000;

const UNAVAILABLE = { code: ErrorCode.issuerUnavailable };
const because = (message: unknown) => ({ ...UNAVAILABLE, cause: { message } });

describe('the keys of an issuer', () => {
  let issuer: Issuer;
  let keys: IssuerKeys;
  const advance = holdClock();

  beforeEach(async () => {
    issuer = await startIssuer('ES256');
    keys = new IssuerKeys(issuer.url);
  });
  afterEach(() => issuer.close());

  const find = (header: CompactJWSHeaderParameters) =>
    keys.find(header, { payload: '', signature: '' });
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

  it('are found if the URL of the issuer ends with a slash', async () => {
    const url = `${issuer.url}/`;
    issuer.documents[METADATA] = { issuer: url, jwks_uri: url + KEYS.slice(1) };
    keys = new IssuerKeys(url);
    expect(await findKey()).toMatchObject(KEY);
  });

  it.each([{ issuer: 'https://example.org' }, {}, null])(
    'are not accepted from metadata that do not name this issuer: %j',
    async (metadata) => {
      const jwks_uri = `${issuer.url}${KEYS}`;
      issuer.documents[METADATA] = metadata && { jwks_uri, ...metadata };
      await expect(findKey()).rejects.toMatchObject(
        because('The metadata of the issuer names another issuer'),
      );
    },
  );

  it('are unavailable when the issuer reports an error, whose status the cause has for the log', async () => {
    issuer.setDown(true);
    await expect(findKey()).rejects.toMatchObject(
      because('The issuer responded with HTTP status 500'),
    );
  });

  it('are unavailable when the issuer has not responded after three seconds', async () => {
    const timer = new AbortController();
    const timeout = jest.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(timer.signal);
    issuer.hold();
    const key = findKey();
    expect(timeout.mock.calls).toEqual([[3000]]);
    timer.abort(new DOMException('', 'TimeoutError'));
    await expect(key).rejects.toMatchObject(UNAVAILABLE);
  });

  it('are unavailable when the issuer publishes none: that is no verdict about a token', async () => {
    await findKey();
    issuer.documents[KEYS] = { keys: [] };
    await advance(1000);
    await expect(findUnknown()).rejects.toMatchObject(UNAVAILABLE);
  });

  it('decide about a token that no key, or more than one, can have signed', async () => {
    await findKey();
    await advance(1000);
    await expect(findUnknown()).rejects.toThrow(errors.JWKSNoMatchingKey);
    await expect(find({ alg: 'HS256' })).rejects.toThrow(errors.JOSENotSupported);
    const { publicJwk } = issuer;
    issuer.documents[KEYS] = { keys: [publicJwk, { ...publicJwk, kid: 'other' }] };
    keys = new IssuerKeys(issuer.url);
    await expect(find({ alg: 'ES256' })).rejects.toThrow(errors.JWKSMultipleMatchingKeys);
  });

  it.each<[string, () => void]>([
    ['reports an error for its metadata', () => issuer.setDown(true)],
    ['has no keys where its metadata say', () => delete issuer.documents[KEYS]],
  ])('are not requested again for a second by an issuer that %s', async (_kind, fail) => {
    const metadata = { ...issuer.documents };
    fail();
    await expect(findKey()).rejects.toMatchObject(UNAVAILABLE);
    const before = issuer.requests;
    issuer.setDown(false);
    Object.assign(issuer.documents, metadata);
    for (const milliseconds of [0, 999]) {
      await advance(milliseconds);
      await expect(findKey()).rejects.toMatchObject(because('The issuer failed a moment ago'));
    }
    expect(issuer.requests).toBe(before);
    await advance(1);
    expect(await findKey()).toMatchObject(KEY);
  });

  it('include a new one at once: its first token waits for the end of that second', async () => {
    await findKey();
    await issuer.rotateKey();
    await advance(999);
    expect(await findKey()).toMatchObject(KEY);
  });

  it('are used for five minutes: then one that was withdrawn is not accepted any more', async () => {
    const withdrawn = headerOf(issuer);
    await findKey();
    const before = issuer.requests;
    await issuer.rotateKey();
    await advance(MAX_AGE_MS - 1);
    expect(await find(withdrawn)).toMatchObject(KEY);
    expect(issuer.requests).toBe(before);
    await advance(1);
    expect(await findKey()).toMatchObject(KEY);
    await advance(1000);
    await expect(find(withdrawn)).rejects.toThrow(errors.JWKSNoMatchingKey);
  });

  it('are used longer while the issuer cannot be reached; whether another key exists is then unknown', async () => {
    await findKey();
    issuer.setDown(true);
    await advance(MAX_AGE_MS);
    expect(await findKey()).toMatchObject(KEY);
    await expect(findUnknown()).rejects.toMatchObject(UNAVAILABLE);
  });
});
