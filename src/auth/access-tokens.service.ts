import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, MoreThan, Repository, type EntityManager, type FindOptionsWhere } from 'typeorm';
import { runStatement } from '../database/run-statement.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { generateAccessToken, hashAccessToken } from './access-token.js';
import type { Caller } from './caller.js';

/** The columns that operators may see. */
export type AccessTokenInfo = Omit<AccessTokenEntity, 'hash'>;

/** Shows a new token to its user. If it fails, the token is not stored. */
export type ShowToken = (token: string) => Promise<void>;

const IS_LIVE = 'revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())';

const FIND = `SELECT id, name, expires_at FROM access_tokens WHERE hash = $1 AND ${IS_LIVE}`;

/** The condition limits the writes of all replicas together to one per token and minute. */
const RECORD_USE = `
  UPDATE access_tokens SET last_used_at = now()
  WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`;

/** Few enough rows for a statement to end well before its time-out. */
const PAGE_SIZE = 5000;

/** Every start with the embedded Postgres deletes all tokens of this name, so no client should have it. */
const DEVELOPMENT = 'development (made at the start)';

/**
 * Creates, lists, revokes, rotates and finds access tokens. A name stands for a client; a client has several
 * tokens while one replaces another.
 */
@Injectable()
export class AccessTokensService {
  constructor(
    @InjectRepository(AccessTokenEntity) private readonly tokens: Repository<AccessTokenEntity>,
  ) {}

  /**
   * @param lifetime milliseconds; undefined means that the token never expires
   * @param show runs before the commit, so that no token is stored that nobody has seen
   * @returns the token, which cannot be read again
   */
  create(name: string, lifetime?: number, show?: ShowToken): Promise<string> {
    return this.tokens.manager.transaction((manager) => insert(manager, name, lifetime, show));
  }

  /** Creates the token for a developer's own machine, and deletes the tokens of earlier starts. */
  async createDevelopmentToken(): Promise<string> {
    await this.tokens.delete({ name: DEVELOPMENT });
    return this.create(DEVELOPMENT);
  }

  /** All tokens, the oldest first. */
  async list(): Promise<AccessTokenInfo[]> {
    const tokens: AccessTokenInfo[] = [];
    let page: AccessTokenInfo[];
    do {
      page = await this.tokens.find({
        // By the primary key: every page is read from the index, however many tokens there are.
        where: { id: MoreThan(tokens.at(-1)?.id ?? '') },
        order: { id: 'ASC' },
        take: PAGE_SIZE,
      });
      tokens.push(...page);
    } while (page.length === PAGE_SIZE);
    return tokens.sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
  }

  /** The live token with this id; if there is none, all live tokens with this name. */
  async findLive(nameOrId: string): Promise<AccessTokenInfo[]> {
    const byId = await findLive(this.tokens.manager, { id: nameOrId });
    return byId.length > 0 ? byId : findLive(this.tokens.manager, { name: nameOrId });
  }

  /** The live tokens among `tokens`. Only their hashes leave this process. */
  findLiveByTokens(tokens: readonly string[]): Promise<AccessTokenInfo[]> {
    return findLive(this.tokens.manager, { hash: In(tokens.map(hashAccessToken)) });
  }

  async revoke(ids: readonly string[]): Promise<void> {
    await this.tokens.query(
      'UPDATE access_tokens SET revoked_at = now() WHERE id = ANY($1) AND revoked_at IS NULL',
      [ids],
    );
  }

  /**
   * Creates a token that replaces all live tokens of a name; these expire after the grace period.
   *
   * @param grace milliseconds for which the old tokens still work
   * @param lifetime of the new token in milliseconds; by default that of the newest old token
   * @param show runs before the commit: if it fails, the old tokens are unchanged
   * @returns the new token, or undefined if the name has no live token
   */
  rotate(
    name: string,
    grace: number,
    lifetime?: number,
    show?: ShowToken,
  ): Promise<string | undefined> {
    return this.tokens.manager.transaction(async (manager) => {
      const old = await findLive(manager, { name }, true);
      const newest = old.at(-1);
      if (newest === undefined) return undefined;
      await manager.query(
        `UPDATE access_tokens SET expires_at = LEAST(expires_at, now() + $2 * interval '1 millisecond')
         WHERE id = ANY($1)`,
        [old.map(({ id }) => id), grace],
      );
      return insert(manager, name, lifetime ?? lifetimeOf(newest), show);
    });
  }

  /**
   * @returns the caller with this token, or undefined if it is unknown, expired or revoked
   * @throws ServiceError databaseUnavailable when the database cannot be reached or does not respond in time
   */
  async find(token: string): Promise<Caller | undefined> {
    const { rows } = await runStatement<
      Pick<AccessTokenEntity, 'id' | 'name'> & { expires_at: Date | null }
    >(this.tokens.manager.dataSource, FIND, [hashAccessToken(token)]);
    const [found] = rows;
    // The look-up in the index does not take constant time, but its duration can reveal only a hash, never a token.
    if (found === undefined) return undefined;
    return { name: found.name, tokenId: found.id, expiresAt: found.expires_at?.getTime() };
  }

  /** Stores that a token was used now, at most once a minute, however often this is called. */
  async recordUse(id: string): Promise<void> {
    await runStatement(this.tokens.manager.dataSource, RECORD_USE, [id]);
  }
}

async function insert(
  manager: EntityManager,
  name: string,
  lifetime?: number,
  show?: ShowToken,
): Promise<string> {
  const token = generateAccessToken();
  // Expiry is computed with the database's clock, because that clock also decides whether a token has expired.
  await manager.query(
    `INSERT INTO access_tokens (id, name, hash, expires_at)
     VALUES ($1, $2, $3, now() + $4 * interval '1 millisecond')`,
    [randomBytes(6).toString('hex'), name, hashAccessToken(token), lifetime ?? null],
  );
  await show?.(token);
  return token;
}

/** The live tokens that match `where`, the oldest first. With `isForUpdate`, their rows are locked. */
function findLive(
  manager: EntityManager,
  where: FindOptionsWhere<AccessTokenEntity>,
  isForUpdate = false,
): Promise<AccessTokenInfo[]> {
  const query = manager
    .createQueryBuilder(AccessTokenEntity, 'token')
    .where(IS_LIVE)
    .andWhere(where)
    .orderBy('token.created_at');
  if (isForUpdate) query.setLock('pessimistic_write');
  return query.getMany();
}

function lifetimeOf({ createdAt, expiresAt }: AccessTokenInfo): number | undefined {
  return expiresAt === null ? undefined : expiresAt.getTime() - createdAt.getTime();
}
