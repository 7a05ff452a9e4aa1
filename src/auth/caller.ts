/** The client that sent a request, as its token identifies it. */
export interface Caller {
  /** The name of the access token, or the subject of a token of the identity provider. */
  readonly name: string;
  /** The id of the access token; undefined for a token of the identity provider. */
  readonly tokenId: string | undefined;
  /** When the token expires, in milliseconds since 1970; undefined means never. */
  readonly expiresAt: number | undefined;
}
