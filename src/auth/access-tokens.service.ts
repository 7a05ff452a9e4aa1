import { randomBytes, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, MoreThan, Repository, type EntityManager, type SelectQueryBuilder } from 'typeorm';
import { runStatement } from '../database/run-statement.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { generateAccessToken, hashAccessToken } from './access-token.js';
import type { Caller } from './caller.js';

/** What there is to know about a token; the token itself is not known to anybody but its user. */
export type AccessTokenInfo = Omit<AccessTokenEntity, 'hash'>;

const IS_LIVE = 'revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())';

const FIND = `SELECT id, name, hash, expires_at FROM access_tokens WHERE hash = $1 AND ${IS_LIVE}`;

/** The condition makes sure that many replicas together write no more often than one. */
const RECORD_USE = `
  UPDATE access_tokens SET last_used_at = now()
  WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`;

/** Few enough rows for one statement to be over long before its time-out. */
const PAGE_SIZE = 5000;

/** Shows a new token to its user. When that fails, the token is not made. */
export type ShowToken = (token: string) => Promise<void>;

const showLater: ShowToken = () => Promise.resolve();

/** No name that a person would choose: all tokens of this name end with every start. */
const DEVELOPMENT = 'development (made at the start)';

/**
 * The life of access tokens. A name stands for the client that uses them; it has several tokens while one
 * replaces another.
 */
@Injectable()
export class AccessTokensService {
  constructor(
    @InjectRepository(AccessTokenEntity) private readonly tokens: Repository<AccessTokenEntity>,
  ) {}

  /**
   * Makes a token.
   *
   * @param lifetime milliseconds; undefined means for ever
   * @param show runs before the commit, so that no token stays behind that nobody has seen
   * @returns the token, which cannot be had a second time
   */
  create(name: string, lifetime?: number, show: ShowToken = showLater): Promise<string> {
    return this.tokens.manager.transaction(async (manager) => {
      const token = await insert(manager, name, lifetime);
      await show(token);
      return token;
    });
  }

  /** Makes the token of a developer's own machine; the ones of earlier starts stop working. */
  async createDevelopmentToken(): Promise<string> {
    await this.tokens.delete({ name: DEVELOPMENT });
    return this.create(DEVELOPMENT);
  }

  /** All tokens, the oldest first. */
  async list(): Promise<AccessTokenInfo[]> {
    const tokens: AccessTokenInfo[] = [];
    let page: AccessTokenInfo[];
    do {
      const last = tokens.at(-1);
      page = await this.tokens.find({
        select: {
          id: true,
          name: true,
          createdAt: true,
          expiresAt: true,
          revokedAt: true,
          lastUsedAt: true,
        },
        // By the primary key: every page is read from the index, however many tokens there are.
        where: last === undefined ? {} : { id: MoreThan(last.id) },
        order: { id: 'ASC' },
        take: PAGE_SIZE,
      });
      tokens.push(...page);
    } while (page.length === PAGE_SIZE);
    return tokens.sort(
      (a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1),
    );
  }

  /** The live token with this id, or else all with this name. */
  async findLive(nameOrId: string): Promise<AccessTokenInfo[]> {
    const byId = await selectLive(this.tokens.manager).andWhere({ id: nameOrId }).getMany();
    if (byId.length > 0) return byId;
    return selectLive(this.tokens.manager).andWhere({ name: nameOrId }).getMany();
  }

  /** Those of these tokens that are live. Only their hashes leave this process. */
  findLiveByTokens(tokens: readonly string[]): Promise<AccessTokenInfo[]> {
    return selectLive(this.tokens.manager)
      .andWhere({ hash: In(tokens.map(hashAccessToken)) })
      .getMany();
  }

  /** Ends tokens for good. */
  async revoke(ids: readonly string[]): Promise<void> {
    await this.tokens.query(
      'UPDATE access_tokens SET revoked_at = now() WHERE id = ANY($1) AND revoked_at IS NULL',
      [ids],
    );
  }

  /**
   * Makes a token to replace all live ones of a name, which end after the grace.
   *
   * @param grace milliseconds in which the old ones still work
   * @param lifetime of the new one, in milliseconds; by default the same as that of the newest old one
   * @param show runs before the commit: when it fails, the old ones work on as before
   * @returns the new token, or undefined if the name has no live token
   */
  rotate(
    name: string,
    grace: number,
    lifetime?: number,
    show: ShowToken = showLater,
  ): Promise<string | undefined> {
    return this.tokens.manager.transaction(async (manager) => {
      const old = await selectLive(manager)
        .andWhere({ name })
        .setLock('pessimistic_write')
        .getMany();
      const newest = old.at(-1);
      if (newest === undefined) return undefined;
      await manager.query(
        `UPDATE access_tokens SET expires_at = LEAST(expires_at, now() + $2 * interval '1 millisecond')
         WHERE id = ANY($1)`,
        [old.map(({ id }) => id), grace],
      );
      const token = await insert(manager, name, lifetime ?? lifetimeOf(newest));
      await show(token);
      return token;
    });
  }

  /**
   * Whom a token of ours stands for, or undefined if it is unknown, expired or revoked.
   *
   * @throws ServiceError databaseUnavailable when that cannot be found out
   */
  async find(token: string): Promise<Caller | undefined> {
    const hash = hashAccessToken(token);
    const dataSource = this.tokens.manager.dataSource;
    const { rows } = await runStatement<{
      id: string;
      name: string;
      hash: Buffer;
      expires_at: Date | null;
    }>(dataSource, FIND, [hash]);
    const [found] = rows;
    // The index compared hashes already, and byte by byte; that tells nothing about a token.
    if (found === undefined || !timingSafeEqual(found.hash, hash)) return undefined;
    return { name: found.name, tokenId: found.id, expiresAt: found.expires_at?.getTime() };
  }

  /** Writes down that a token was used, at most once a minute, however often this is called. */
  async recordUse(id: string): Promise<void> {
    await runStatement(this.tokens.manager.dataSource, RECORD_USE, [id]);
  }
}

async function insert(manager: EntityManager, name: string, lifetime?: number): Promise<string> {
  const token = generateAccessToken();
  // The clock of the database decides about expiry, so it also says when that is.
  await manager.query(
    `INSERT INTO access_tokens (id, name, hash, expires_at)
     VALUES ($1, $2, $3, now() + $4 * interval '1 millisecond')`,
    [randomBytes(6).toString('hex'), name, hashAccessToken(token), lifetime ?? null],
  );
  return token;
}

function selectLive(manager: EntityManager): SelectQueryBuilder<AccessTokenEntity> {
  return manager
    .createQueryBuilder(AccessTokenEntity, 'token')
    .select(['token.id', 'token.name', 'token.createdAt', 'token.expiresAt', 'token.lastUsedAt'])
    .where(IS_LIVE)
    .orderBy('token.created_at');
}

function lifetimeOf({ createdAt, expiresAt }: AccessTokenInfo): number | undefined {
  return expiresAt === null ? undefined : expiresAt.getTime() - createdAt.getTime();
}
