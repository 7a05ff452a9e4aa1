import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type DataSource } from 'typeorm';
import { inTransaction, runStatement, type RunInTransaction } from '../database/run-statement.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { DEVELOPMENT, generateAccessToken, hashAccessToken } from './access-token.js';
import type { Caller } from './caller.js';

/** The columns that operators may see. */
export type AccessTokenInfo = Omit<AccessTokenEntity, 'hash'>;

/** The part of a token that log entries and messages show. */
export type TokenName = Pick<AccessTokenInfo, 'id' | 'name'>;

/** A new token, and the tokens that it replaces. */
export interface Replacement {
  readonly token: string;
  readonly id: string;
  readonly replaced: readonly AccessTokenInfo[];
}

/** Shows a new token, and its id, to its user. If it fails, the token is not stored. */
export type ShowToken = (token: string, id: string) => void | Promise<void>;

const IS_LIVE = 'revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())';

/** The milliseconds since 1970, because `DateStyle` decides how the server prints a time. */
const epochOf = (column: string) => `(extract(epoch FROM ${column}) * 1000)::numeric AS ${column}`;

const FIND = `SELECT id, name, ${epochOf('expires_at')} FROM access_tokens WHERE hash = $1 AND ${IS_LIVE}`;

const SELECT_INFO = `
  SELECT id, name, ${['created_at', 'expires_at', 'revoked_at', 'last_used_at'].map(epochOf).join(', ')}
  FROM access_tokens`;

/** By the primary key: every page is read from the index, however many tokens there are. */
const SELECT_PAGE = `${SELECT_INFO} WHERE id > $1 ORDER BY id LIMIT $2`;

const selectLive = (condition: string) =>
  `${SELECT_INFO} WHERE ${IS_LIVE} AND ${condition} ORDER BY access_tokens.created_at`;

const REVOKE =
  'UPDATE access_tokens SET revoked_at = now() WHERE id = ANY($1) AND revoked_at IS NULL';

const END_AFTER_GRACE = `
  UPDATE access_tokens SET expires_at = LEAST(expires_at, now() + $2 * interval '1 millisecond')
  WHERE id = ANY($1)
  RETURNING id, ${epochOf('expires_at')}`;

const REVOKE_LIVE = `
  UPDATE access_tokens SET revoked_at = now() WHERE name = $1 AND ${IS_LIVE} RETURNING id, name`;

const DELETE = `DELETE FROM access_tokens WHERE name = $1 RETURNING id, name, ${IS_LIVE} AS is_live`;

/** Expiry is computed with the database's clock, because that clock also decides whether a token has expired. */
const INSERT = `
  INSERT INTO access_tokens (id, name, hash, expires_at)
  VALUES ($1, $2, $3, now() + $4 * interval '1 millisecond')`;

/** The condition limits the writes of all replicas together to one per token and minute. */
const RECORD_USE = `
  UPDATE access_tokens SET last_used_at = now()
  WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`;

/** Few enough rows for a statement to end well before its timeout. */
const PAGE_SIZE = 5000;

/** Versions that made a new token at every start gave it this name. */
const DEVELOPMENT_BEFORE = 'development (made at the start)';

/** Times are milliseconds since 1970, as text. */
interface InfoRow {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly last_used_at: string | null;
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
   * @param show runs before the commit, so that no token is stored that nobody has seen
   * @returns the token, which cannot be read again
   */
  create(name: string, lifetime?: number, show?: ShowToken): Promise<string> {
    return inTransaction(this.dataSource, async (run) => {
      const { token } = await insert(run, name, lifetime, show);
      return token;
    });
  }

  /**
   * Creates the token for a developer's own machine, and revokes the earlier ones, which nobody keeps.
   *
   * @returns the token, and the live tokens that it replaces
   */
  createDevelopmentToken(): Promise<{ token: string; id: string; revoked: TokenName[] }> {
    return inTransaction(this.dataSource, async (run) => {
      const deleted = await run<TokenName & { is_live: boolean }>(DELETE, [DEVELOPMENT_BEFORE]);
      const revoked = await run<TokenName>(REVOKE_LIVE, [DEVELOPMENT]);
      const ended = [...deleted.rows.filter((row) => row.is_live), ...revoked.rows];
      return {
        ...(await insert(run, DEVELOPMENT)),
        revoked: ended.map(({ id, name }) => ({ id, name })),
      };
    });
  }

  /** All tokens, the oldest first. */
  async list(): Promise<AccessTokenInfo[]> {
    const tokens: AccessTokenInfo[] = [];
    let page: InfoRow[];
    do {
      const last = tokens.at(-1)?.id ?? '';
      page = (await runStatement<InfoRow>(this.dataSource, SELECT_PAGE, [last, PAGE_SIZE])).rows;
      tokens.push(...page.map(infoOf));
    } while (page.length === PAGE_SIZE);
    return tokens.sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
  }

  /** The live token with this id; if there is none, all live tokens with this name. */
  async findLive(nameOrId: string): Promise<AccessTokenInfo[]> {
    const byId = await this.selectLive('id = $1', nameOrId);
    return byId.length > 0 ? byId : this.selectLive('name = $1', nameOrId);
  }

  /** The live tokens among `tokens`. Only their hashes leave this process. */
  findLiveByTokens(tokens: readonly string[]): Promise<AccessTokenInfo[]> {
    return this.selectLive('hash = ANY($1::bytea[])', tokens.map(hashAccessToken));
  }

  private async selectLive(condition: string, value: unknown): Promise<AccessTokenInfo[]> {
    const { rows } = await runStatement<InfoRow>(this.dataSource, selectLive(condition), [value]);
    return rows.map(infoOf);
  }

  async revoke(ids: readonly string[]): Promise<void> {
    await runStatement(this.dataSource, REVOKE, [ids]);
  }

  /**
   * Creates a token that replaces all live tokens of a name; these expire after the grace period.
   *
   * @param grace milliseconds for which the old tokens still work
   * @param lifetime of the new token in milliseconds; by default that of the newest old token
   * @param show runs before the commit: if it fails, the old tokens are unchanged
   * @returns undefined if the name has no live token
   */
  rotate(
    name: string,
    grace: number,
    lifetime?: number,
    show?: ShowToken,
  ): Promise<Replacement | undefined> {
    return inTransaction(this.dataSource, async (run) => {
      const { rows } = await run<InfoRow>(`${selectLive('name = $1')} FOR UPDATE`, [name]);
      const old = rows.map(infoOf);
      const newest = old.at(-1);
      if (newest === undefined) return undefined;
      const ended = await run<Pick<InfoRow, 'id' | 'expires_at'>>(END_AFTER_GRACE, [
        old.map(({ id }) => id),
        grace,
      ]);
      const ends = new Map(ended.rows.map(({ id, expires_at }) => [id, dateOf(expires_at)]));
      const created = await insert(run, name, lifetime ?? lifetimeOf(newest), show);
      return {
        ...created,
        replaced: old.map((token) => ({ ...token, expiresAt: ends.get(token.id) ?? null })),
      };
    });
  }

  /**
   * @returns the caller with this token, or undefined if it is unknown, expired or revoked
   * @throws ServiceError databaseUnavailable when the database cannot be reached or does not respond in time
   */
  async find(token: string): Promise<Caller | undefined> {
    const { rows } = await runStatement<Pick<InfoRow, 'id' | 'name' | 'expires_at'>>(
      this.dataSource,
      FIND,
      [hashAccessToken(token)],
    );
    const [found] = rows;
    // The lookup in the index does not take constant time, but its duration can reveal only a hash, never a token.
    if (found === undefined) return undefined;
    return { name: found.name, tokenId: found.id, expiresAt: dateOf(found.expires_at)?.getTime() };
  }

  /** Stores that a token was used now, at most once a minute, however often this is called. */
  async recordUse(id: string): Promise<void> {
    await runStatement(this.dataSource, RECORD_USE, [id]);
  }
}

async function insert(
  run: RunInTransaction,
  name: string,
  lifetime?: number,
  show?: ShowToken,
): Promise<{ token: string; id: string }> {
  const token = generateAccessToken();
  const id = randomBytes(6).toString('hex');
  await run(INSERT, [id, name, hashAccessToken(token), lifetime ?? null]);
  await show?.(token, id);
  return { token, id };
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
