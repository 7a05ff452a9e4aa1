import { Column, Entity, PrimaryColumn, Unique } from 'typeorm';

/** What is known of an access token. The token itself is shown once, when it is made, and never stored. */
@Entity('access_tokens')
@Unique('access_tokens_hash_key', ['hash'])
export class AccessTokenEntity {
  @PrimaryColumn('text', { primaryKeyConstraintName: 'access_tokens_pkey' })
  id: string;

  @Column('text')
  name: string;

  /** SHA-256 of the token. */
  @Column('bytea')
  hash: Buffer;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  @Column('timestamptz', { name: 'expires_at', nullable: true })
  expiresAt: Date | null;

  @Column('timestamptz', { name: 'revoked_at', nullable: true })
  revokedAt: Date | null;

  @Column('timestamptz', { name: 'last_used_at', nullable: true })
  lastUsedAt: Date | null;
}
