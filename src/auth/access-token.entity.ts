import { Column, Entity, PrimaryColumn, Unique } from 'typeorm';

/** An access token without the token itself, which is shown once, when it is created, and never stored. */
@Entity('access_tokens')
@Unique('access_tokens_hash_key', ['hash'])
export class AccessTokenEntity {
  @PrimaryColumn('text', { primaryKeyConstraintName: 'access_tokens_pkey' })
  id: string;

  @Column('text')
  name: string;

  /** SHA-256 of the token. Only the lookup of a token reads it: nothing else shows it by mistake. */
  @Column('bytea', { select: false })
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
