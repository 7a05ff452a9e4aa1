import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type DataSource } from 'typeorm';
import { inTransaction, prepared, runStatement } from '../database/run-statement.js';
import { AccessTokenEntity } from './access-token.entity.js';
import {
  DEVELOPMENT,
  generateAccessToken,
  hashAccessToken,
  isWellFormedAccessToken,
} from './access-token.js';
import type { Caller } from './caller.js';

/** The columns that operators may see. */
export type AccessTokenInfo = Omit<AccessTokenEntity, 'hash'>;

/** The part of a token that log entries and messages show. */
export type TokenName = Pick<AccessTokenInfo, 'id' | 'name'>;

export interface NewToken {
  readonly token: string;
  readonly id: string;
}

/** A new token, and the tokens that it replaces. */
export interface Replacement extends NewToken {
  readonly replaced: readonly AccessTokenInfo[];
}

const IS_LIVE = 'revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())';

/** The milliseconds since 1970, because `DateStyle` decides how the server prints a time. */
const epochOf = (column: string) => `(extract(epoch FROM ${column}) * 1000)::numeric AS ${column}`;

const FIND = prepared(`
  SELECT encode(hash, 'hex') AS hash, id, name, ${epochOf('expires_at')} FROM access_tokens
  WHERE hash = ANY($1) AND ${IS_LIVE}`);

const SELECT_INFO = `
  SELECT id, name, ${['created_at', 'expires_at', 'revoked_at', 'last_used_at'].map(epochOf).join(', ')}
  FROM access_tokens`;

const SELECT_ALL = prepared(`${SELECT_INFO} ORDER BY access_tokens.created_at`);

/** Tokens of a name that were replaced expire early, but the newest one has the lifetime that its name was given. */
const SELECT_NEWEST = `${SELECT_INFO} WHERE name = $1 ORDER BY access_tokens.created_at DESC LIMIT 1`;

const selectLive = (condition: string) =>
  `${SELECT_INFO} WHERE ${IS_LIVE} AND ${condition} ORDER BY access_tokens.created_at`;

const REVOKE = prepared(
  'UPDATE access_tokens SET revoked_at = now() WHERE id = ANY($1) AND revoked_at IS NULL',
);

const END_AFTER_GRACE = `
  UPDATE access_tokens SET expires_at = LEAST(expires_at, now() + $2 * interval '1 millisecond')
  WHERE id = ANY($1)
  RETURNING id, ${epochOf('expires_at')}`;

const REVOKE_LIVE = `
  UPDATE access_tokens SET revoked_at = now() WHERE name = $1 AND ${IS_LIVE} RETURNING id, name`;

/** Expiry is computed with the database's clock, because that clock also decides whether a token has expired. */
const INSERT = `
  INSERT INTO access_tokens (id, name, hash, expires_at)
  VALUES ($1, $2, $3, now() + $4 * interval '1 millisecond')`;

/** The condition limits the writes of all replicas together to one per token and minute. */
const RECORD_USE = prepared(`
  UPDATE access_tokens SET last_used_at = now()
  WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`);

/** Times are milliseconds since 1970, as text. */
interface InfoRow {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly last_used_at: string | null;
}

interface FoundRow extends Pick<InfoRow, 'id' | 'name' | 'expires_at'> {
  /** In hexadecimal. */
  readonly hash: string;
}

/**
 * Creates, lists, revokes, rotates and finds access tokens. A name stands for a client; a client has several
 * tokens while one replaces another.
 */
@Injectable()
export class AccessTokensService {
  constructor(
    @InjectRepository(AccessTokenEntity) private readonly tokens: Repository<AccessTokenEntity>,
  ) {}

  private get dataSource(): DataSource {
    return this.tokens.manager.dataSource;
  }

  /**
   * @param lifetime milliseconds; undefined means that the token never expires
   * @returns the token, which cannot be read again
   */
  async create(name: string, lifetime?: number): Promise<NewToken> {
    const token = newToken();
    // Not as a statement that is sent again after a lost connection: the token may be stored already.
    await inTransaction(this.dataSource, (run) => run(INSERT, valuesOf(token, name, lifetime)));
    return token;
  }

  /**
   * Creates the token for a developer's own machine, and revokes the earlier ones, which nobody keeps.
   *
   * @returns the token, and the live tokens that it replaces
   */
  createDevelopmentToken(): Promise<NewToken & { revoked: TokenName[] }> {
    return inTransaction(this.dataSource, async (run) => {
      const { rows } = await run<TokenName>(REVOKE_LIVE, [DEVELOPMENT]);
      const token = newToken();
      await run(INSERT, valuesOf(token, DEVELOPMENT));
      return { ...token, revoked: rows.map(({ id, name }) => ({ id, name })) };
    });
  }

  /** All tokens, the oldest first. */
  async list(): Promise<AccessTokenInfo[]> {
    const { rows } = await runStatement<InfoRow>(this.dataSource, SELECT_ALL, []);
    return rows.map(infoOf);
  }

  /**
   * @param word a token, of which only the hash leaves this process, an id or a name
   * @returns the live token that it is or names; if there is none, all live tokens with this name
   */
  async findLive(word: string): Promise<AccessTokenInfo[]> {
    const found = isWellFormedAccessToken(word)
      ? await this.selectLive('hash = $1', hashAccessToken(word))
      : await this.selectLive('id = $1', word);
    return found.length > 0 ? found : this.selectLive('name = $1', word);
  }

  private async selectLive(condition: string, value: unknown): Promise<AccessTokenInfo[]> {
    const { rows } = await runStatement<InfoRow>(this.dataSource, prepared(selectLive(condition)), [
      value,
    ]);
    return rows.map(infoOf);
  }

  async revoke(ids: readonly string[]): Promise<void> {
    await runStatement(this.dataSource, REVOKE, [ids]);
  }

  /**
   * Creates a token that replaces all live tokens of a name; these expire after the grace period.
   *
   * @param grace milliseconds for which the old tokens still work
   * @param lifetime of the new token in milliseconds; by default that of the newest token of the name
   * @returns undefined if the name has no live token
   */
  rotate(name: string, grace: number, lifetime?: number): Promise<Replacement | undefined> {
    return inTransaction(this.dataSource, async (run) => {
      // Another rotation of the name waits here until this one is committed.
      const { rows } = await run<InfoRow>(`${selectLive('name = $1')} FOR UPDATE`, [name]);
      const old = rows.map(infoOf);
      if (old.length === 0) return undefined;
      const newest = await run<InfoRow>(SELECT_NEWEST, [name]);
      const ended = await run<Pick<InfoRow, 'id' | 'expires_at'>>(END_AFTER_GRACE, [
        old.map(({ id }) => id),
        grace,
      ]);
      const ends = new Map(ended.rows.map(({ id, expires_at }) => [id, dateOf(expires_at)]));
      const token = newToken();
      const inherited = lifetimeOf(infoOf(newest.rows[0]!));
      await run(INSERT, valuesOf(token, name, lifetime ?? inherited));
      return {
        ...token,
        replaced: old.map((info) => ({ ...info, expiresAt: ends.get(info.id) ?? null })),
      };
    });
  }

  /** The caller with a token, as `findAll`. */
  async find(token: string): Promise<Caller | undefined> {
    const [caller] = await this.findAll([token]);
    return caller;
  }

  /**
   * @returns for each token its caller, or undefined if it is unknown, expired or revoked
   * @throws ServiceError databaseUnavailable when the database cannot be reached or does not respond in time
   */
  async findAll(tokens: readonly string[]): Promise<(Caller | undefined)[]> {
    const hashes = tokens.map(hashAccessToken);
    const { rows } = await runStatement<FoundRow>(this.dataSource, FIND, [hashes]);
    // The lookup in the index does not take constant time, but its duration can reveal only a hash, never a token.
    const callers = new Map<string, Caller>();
    for (const { hash, id, name, expires_at } of rows) {
      callers.set(hash, { name, tokenId: id, expiresAt: dateOf(expires_at)?.getTime() });
    }
    return hashes.map((hash) => callers.get(hash.toString('hex')));
  }

  /** Stores that a token was used now, at most once a minute, however often this is called. */
  async recordUse(id: string): Promise<void> {
    await runStatement(this.dataSource, RECORD_USE, [id]);
  }
}

function newToken(): NewToken {
  return { token: generateAccessToken(), id: randomBytes(6).toString('hex') };
}

/** The parameters of INSERT. */
function valuesOf({ token, id }: NewToken, name: string, lifetime?: number): unknown[] {
  return [id, name, hashAccessToken(token), lifetime ?? null];
}

function infoOf({ id, name, ...times }: InfoRow): AccessTokenInfo {
  return {
    id,
    name,
    createdAt: new Date(Number(times.created_at)),
    expiresAt: dateOf(times.expires_at),
    revokedAt: dateOf(times.revoked_at),
    lastUsedAt: dateOf(times.last_used_at),
  };
}

/** An administrator may have set the time `infinity`, which never comes. */
function dateOf(epoch: string | null): Date | null {
  return epoch === null || epoch === 'Infinity' ? null : new Date(Number(epoch));
}

function lifetimeOf({ createdAt, expiresAt }: AccessTokenInfo): number | undefined {
  return expiresAt === null ? undefined : expiresAt.getTime() - createdAt.getTime();
}
