/** The sender of a request. */
export interface Caller {
  /** The name the token was created under, or the subject of a token of the identity provider. */
  readonly name: string;
  /** The id of an access token of ours; undefined for a token of the identity provider. */
  readonly tokenId: string | undefined;
  /** When the token stops being valid, in milliseconds since 1970; undefined means never. */
  readonly expiresAt: number | undefined;
}
