import { mkdtemp, readdir, readFile, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { generateAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';
import { findDevelopmentToken } from './development-token.js';

describe('the token for development', () => {
  const database = new UnitDatabase('block');
  let tokens: AccessTokensService;
  let dataDir: string;
  let file: string;
  let log: unknown[];

  beforeAll(async () => {
    const dataSource = await database.openWithSchema([AccessTokenEntity]);
    tokens = new AccessTokensService(dataSource.getRepository(AccessTokenEntity));
  });
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'plant-store-token-'));
    file = join(dataDir, 'development-token');
    log = [];
    await tokens.create('shed');
  });
  afterEach(async () => {
    await rm(dataDir, { recursive: true, force: true });
    await database.query('TRUNCATE access_tokens');
  });

  const find = () =>
    findDevelopmentToken(tokens, dataDir, {
      info: (fields: object, text?: string) => log.push([fields, text]),
      warn: (text: string) => log.push(text),
    });
  const idOf = async (token: string) => (await tokens.find(token))!.tokenId;
  const created = (id: unknown) => [
    { token: 'development', tokenId: id },
    'Created the token development.',
  ];

  it('is the same at every start, in a file that only its owner can read', async () => {
    const token = await find();
    expect(await find()).toBe(token);
    expect(await readFile(file, 'utf8')).toBe(`${token}\n`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(dataDir)).toEqual(['development-token']);
    expect(log).toEqual([created(await idOf(token))]);
  });

  it.each<[string, 'live' | 'revoked', () => Promise<unknown>]>([
    ['its file is removed', 'live', () => unlink(file)],
    ['its file has another token', 'live', () => writeFile(file, generateAccessToken())],
    [
      'it is revoked',
      'revoked',
      async () => tokens.revoke((await tokens.findLive('development')).map(({ id }) => id)),
    ],
  ])('is replaced, and no longer valid, if %s', async (_reason, state, change) => {
    const old = await find();
    const oldId = await idOf(old);
    await change();
    log = [];
    const token = await find();
    expect(await find()).toBe(token);
    const revoked = [
      { token: 'development', tokenId: oldId },
      'Revoked the token development, which the new one replaces.',
    ];
    expect(log).toEqual([created(await idOf(token)), ...(state === 'live' ? [revoked] : [])]);
    expect(await tokens.find(old)).toBeUndefined();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await tokens.findLive('shed')).toHaveLength(1);
  });

  it('if its file cannot be written, it is valid until the next start, and the log says why', async () => {
    await rm(dataDir, { recursive: true });
    const token = await find();
    expect(log).toEqual([
      created(await idOf(token)),
      `${file} cannot be written: there is no such file or folder. The next start makes another token for development.`,
    ]);
  });
});
