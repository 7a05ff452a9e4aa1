import { createServer, type ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose';
import { startServer } from './open-server.js';

/** An identity provider that signs with real keys. */
export interface Issuer {
  readonly url: string;
  /** Requests so far. */
  readonly requests: number;
  /** The public key that is used now, as it is published. */
  readonly publicJwk: JWK;
  /** What it publishes, by path; a test may change it. */
  readonly documents: Record<string, unknown>;
  /** Signs a token as RFC 9068 describes it, with changes for a test. */
  sign(changes?: Record<string, unknown>, header?: Record<string, unknown>): Promise<string>;
  /** Signs with a new key from now on, and withdraws the old one. */
  rotateKey(): Promise<void>;
  /** Responds only with errors, or works again. */
  setDown(isDown: boolean): void;
  /** Holds all responses back, or those to one path, until the test calls the function that this returns. */
  hold(path?: string): () => void;
  close(): Promise<void>;
}

export const AUDIENCE = 'plant-store';

export async function startIssuer(algorithm = 'RS256'): Promise<Issuer> {
  let privateKey: CryptoKey;
  let publicJwk: JWK;
  let serial = 0;
  let requests = 0;
  let isDown = false;
  let isReleased = Promise.resolve();
  let heldPath: string | undefined;
  const documents: Record<string, unknown> = {};

  const rotateKey = async () => {
    const pair = await generateKeyPair(algorithm);
    privateKey = pair.privateKey;
    publicJwk = {
      ...(await exportJWK(pair.publicKey)),
      kid: `key-${++serial}`,
      use: 'sig',
      alg: algorithm,
    };
    documents['/keys'] = { keys: [publicJwk] };
  };
  await rotateKey();

  const respond = (path: string, response: ServerResponse) => {
    if (isDown) {
      response.writeHead(500).end();
      return;
    }
    const document = documents[path];
    response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document));
  };
  const server = createServer((request, response) => {
    requests++;
    const isHeld = heldPath === undefined || heldPath === request.url;
    void (isHeld ? isReleased : Promise.resolve()).then(() => respond(request.url!, response));
  });
  const { url, close } = await startServer(server);
  documents['/.well-known/openid-configuration'] = { issuer: url, jwks_uri: `${url}/keys` };

  return {
    url,
    documents,
    get requests() {
      return requests;
    },
    get publicJwk() {
      return publicJwk;
    },
    sign: (changes = {}, header = {}) => {
      const now = Math.floor(Date.now() / 1000);
      const claims = {
        iss: url,
        aud: AUDIENCE,
        sub: 'gardener',
        client_id: 'garden-app',
        jti: `${now}-${Math.random()}`,
        iat: now,
        exp: now + 300,
        ...changes,
      };
      return (
        new SignJWT(claims)
          .setProtectedHeader({
            alg: publicJwk.alg!,
            typ: 'at+jwt',
            kid: publicJwk.kid!,
            ...header,
          })
          // Otherwise, jose signs no header with an extension that it does not know.
          .sign(privateKey, { crit: { x: true } })
      );
    },
    rotateKey,
    setDown: (value) => {
      isDown = value;
    },
    hold: (path) => {
      heldPath = path;
      const { promise, resolve } = Promise.withResolvers<void>();
      isReleased = promise;
      return resolve;
    },
    close,
  };
}
