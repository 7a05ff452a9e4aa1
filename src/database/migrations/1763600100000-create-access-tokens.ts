import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateAccessTokens1763600100000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE access_tokens (
        id text NOT NULL,
        name text NOT NULL,
        hash bytea NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz,
        revoked_at timestamptz,
        last_used_at timestamptz,
        CONSTRAINT access_tokens_pkey PRIMARY KEY (id),
        CONSTRAINT access_tokens_hash_key UNIQUE (hash)
      )
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE access_tokens');
  }
}
