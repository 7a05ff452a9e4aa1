import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LRUCache } from 'lru-cache';
import { Repository } from 'typeorm';
import { runStatement } from '../database/run-statement.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { generateAccessToken, hashAccessToken, isWellFormedAccessToken } from './access-token.js';

/** Who sent a request. */
export interface Caller {
  /** The name the token was created under. */
  readonly tokenName: string;
}

/** How long a verdict is believed, and so how long a revoked token may go on working. */
const CACHE_TTL_MS = 5000;
const CACHE_SIZE = 10_000;

const DEVELOPMENT = 'development';

const FIND = `
  SELECT name FROM access_tokens
  WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`;

@Injectable()
export class AccessTokensService {
  /** Verdicts by the token's hash; false stands for a token that is not valid. */
  private readonly verdicts = new LRUCache<string, Caller | false>({
    max: CACHE_SIZE,
    ttl: CACHE_TTL_MS,
  });

  constructor(
    @InjectRepository(AccessTokenEntity) private readonly tokens: Repository<AccessTokenEntity>,
  ) {}

  /**
   * Makes a token.
   *
   * @returns the token, which cannot be had a second time
   */
  async create(name: string): Promise<string> {
    const token = generateAccessToken();
    await this.tokens.insert({
      id: randomBytes(6).toString('hex'),
      name,
      hash: hashAccessToken(token),
    });
    return token;
  }

  /** Makes the token of a developer's own machine; the ones of earlier starts stop working. */
  async createDevelopmentToken(): Promise<string> {
    await this.tokens.delete({ name: DEVELOPMENT });
    return this.create(DEVELOPMENT);
  }

  /**
   * Who the token stands for, or undefined if it is unknown, expired or revoked.
   *
   * @throws ServiceError databaseUnavailable when that cannot be found out
   */
  async verify(token: string): Promise<Caller | undefined> {
    if (!isWellFormedAccessToken(token)) return undefined;
    const hash = hashAccessToken(token);
    const key = hash.toString('base64');
    let verdict = this.verdicts.get(key);
    if (verdict === undefined) {
      verdict = await this.find(hash);
      this.verdicts.set(key, verdict);
    }
    return verdict || undefined;
  }

  private async find(hash: Buffer): Promise<Caller | false> {
    const dataSource = this.tokens.manager.dataSource;
    const [found] = await runStatement<{ name: string }>(dataSource, FIND, [hash]);
    return found !== undefined && { tokenName: found.name };
  }
}
