import { mkdtemp, readdir, readFile, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { generateAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';
import { findDevelopmentToken, keepDevelopmentToken } from './development-token.js';

describe('the token for development', () => {
  const database = new UnitDatabase('block');
  let tokens: AccessTokensService;
  let dataDir: string;
  let file: string;
  let warnings: string[];
  let made: unknown[];

  beforeAll(async () => {
    const dataSource = await database.openWithSchema([AccessTokenEntity]);
    tokens = new AccessTokensService(dataSource.getRepository(AccessTokenEntity));
  });
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'plant-store-token-'));
    file = join(dataDir, 'development-token');
    warnings = [];
    made = [];
  });
  afterEach(async () => {
    await rm(dataDir, { recursive: true });
    await database.query('TRUNCATE access_tokens');
  });

  const find = () =>
    findDevelopmentToken(tokens, dataDir, {
      info: (fields: object, text?: string) => made.push([fields, text]),
      warn: (text: string) => warnings.push(text),
    });

  it('is the same at every start, in a file that only its owner can read', async () => {
    const token = await find();
    expect(await find()).toBe(token);
    expect(await readFile(file, 'utf8')).toBe(`${token}\n`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(dataDir)).toEqual(['development-token']);
    expect(await tokens.findLive('development')).toHaveLength(1);
    expect(warnings).toEqual([]);
    const [{ id }] = (await tokens.list()) as [AccessTokenEntity];
    expect(made).toEqual([
      [{ token: 'development', tokenId: id }, 'Created the token development.'],
    ]);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['its file is removed', () => unlink(file)],
    ['its file holds no token', () => writeFile(file, 'plantstore_')],
    ['its file holds a token of another database', () => writeFile(file, generateAccessToken())],
    [
      'it is revoked',
      async () => tokens.revoke((await tokens.findLive('development')).map(({ id }) => id)),
    ],
  ])('is replaced, and no longer valid, if %s', async (_reason, change) => {
    const old = await find();
    const { tokenId: oldId } = (await tokens.find(old))!;
    await change();
    const isLive = (await tokens.find(old)) !== undefined;
    made = [];
    const token = await find();
    expect(token).not.toBe(old);
    const { tokenId } = (await tokens.find(token))!;
    const revoked = [
      { token: 'development', tokenId: oldId },
      'Revoked the token development, which the new one replaces.',
    ];
    expect(made).toEqual([
      [{ token: 'development', tokenId }, 'Created the token development.'],
      ...(isLive ? [revoked] : []),
    ]);
    expect(await tokens.find(old)).toBeUndefined();
    expect(await find()).toBe(token);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await tokens.findLive('development')).toHaveLength(1);
  });

  it('is valid until the next start where it cannot be kept, and the reason is said', async () => {
    await rm(dataDir, { recursive: true });
    const token = await find();
    expect(await tokens.find(token)).toBeDefined();
    expect(warnings).toEqual([
      `${file} cannot be written: there is no such file or folder. The next start makes another token for development.`,
    ]);
    expect(() => keepDevelopmentToken(dataDir, token)).toThrow(
      expect.objectContaining({
        message: `${file} cannot be written: there is no such file or folder.`,
        cause: expect.objectContaining({ code: 'ENOENT' }) as unknown,
      }),
    );
    dataDir = await mkdtemp(join(tmpdir(), 'plant-store-token-'));
  });
});
