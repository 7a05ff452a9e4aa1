import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ROOT, runProgram } from '../setup/process/command.js';
import { startGateway, type GatewayFault, type Gateway } from '../setup/http/gateway.js';
import type { StoredPlant } from '../setup/database/stored-plants.js';
import { startService, type TestService } from '../setup/service/service.js';

const PLANTS: readonly StoredPlant[] = [
  { id: '-9223372036854775808', name: '"Acer" \\ negundo', tag: 'Acer' },
  { id: '0', name: 'Acer' },
  { id: '9007199254740993', name: 'Ácer 🌱', tag: 'a b' },
  { id: '9223372036854775807', name: 'Acer negundo', tag: 'Acer' },
];

interface Sample {
  /** Programs and files that its language needs. */
  readonly needs?: readonly string[];
  /** Writes what is generated or compiled to `folder`. */
  prepare?(folder: string): Promise<void>;
  /** @returns the program, and its arguments before those of the plant */
  command(folder: string): string[];
  /** @returns the arguments that describe the plant, by default its id, name and tag */
  readonly argumentsOf?: (plant: Partial<StoredPlant>) => string[];
}

export const example = (file: string): string => join(ROOT, 'examples', file);

const idNameTag = ({ id, name, tag }: Partial<StoredPlant>): string[] =>
  [id, name, tag].filter((argument) => argument != null);

export const isInstalled = (program: string): boolean =>
  program.startsWith('/')
    ? existsSync(program)
    : process.env['PATH']!.split(delimiter).some((folder) => existsSync(join(folder, program)));

/** The names of errors that say nothing to a person who only runs a sample, and an error without a text. */
const RAW =
  /^(Syntax|Type|Range)Error|IncompleteRead|JSONDecode|JsonParse|JsonEOF|NullPointer|NumberFormat|OutOfBounds|Traceback|not set$|^Error$/m;

/** A response that is not one of the service. */
const NOT_OURS =
  /not a response of the Plant Store|No (JSON|plant)\.|\b(200|400|404|500|502):? [<{]|no such page/;

/** What a gateway sends while the service is away: the samples may also say that, because they sent the plant again. */
const AWAY = new RegExp(`${NOT_OURS.source}|does not respond`);

/** Runs a sample as a client developer does, against a real service behind a gateway that fails. */
export function describeSample(sampleName: string, sample: Sample): void {
  const missing = (sample.needs ?? []).filter((program) => !isInstalled(program));
  const title = (text: string) =>
    missing.length === 0 ? text : `${text} (not installed: ${missing.join(', ')})`;
  const test = missing.length === 0 ? it : it.skip;

  describe(sampleName, () => {
    let folder: string;
    let service: TestService;
    let gateway: Gateway;

    beforeAll(async () => {
      service = await startService();
      folder = await mkdtemp(join(tmpdir(), 'plant-store-client-'));
      if (missing.length === 0) await sample.prepare?.(folder);
    });
    beforeEach(async () => {
      gateway = await startGateway(service.url);
    });
    afterEach(async () => {
      await gateway.close();
      await service.database.query('TRUNCATE plants');
    });
    afterAll(async () => {
      await rm(folder, { recursive: true });
      await service.close();
    });

    const { argumentsOf = idNameTag } = sample;

    const run = (plant: Partial<StoredPlant>, env: Record<string, string> = {}) =>
      runWith(argumentsOf(plant), env);

    async function runWith(args: string[], env: Record<string, string> = {}) {
      const [program, ...options] = sample.command(folder);
      const command = runProgram(program!, [...options, ...args], {
        LANG: 'C.UTF-8',
        PLANT_STORE_URL: gateway.url,
        PLANT_STORE_TOKEN: service.token,
        ...env,
      });
      const exitCode = await command.exit();
      return { exitCode, output: command.stdout + command.stderr };
    }

    test(title('stores int64 ids exactly'), async () => {
      for (const plant of PLANTS) {
        expect(await run(plant)).toMatchObject({ exitCode: 0 });
      }
      expect(await service.storedPlants()).toEqual(PLANTS);
    });

    test(title('repeats the same plant after 503, 429, 502, 504 and a lost response'), async () => {
      const plant = PLANTS[2]!;
      service.proxy.cut();
      const statuses: number[] = [];
      gateway.onResponse = (status) => {
        statuses.push(status);
        if (statuses.length > 1) return;
        service.proxy.restore();
        gateway.faults.push(
          { status: 429, retryAfter: '2' },
          'lost',
          { status: 502 },
          { status: 504 },
        );
      };
      expect(await run(plant)).toMatchObject({ exitCode: 0 });
      expect(statuses[0]).toBe(503);
      expect(gateway.faults).toEqual([]);
      expect(new Set(gateway.requests.map(({ body }) => body)).size).toBe(1);
      const [, limited, next] = gateway.requests;
      // Timers may be a moment early.
      expect(next!.at - limited!.at).toBeGreaterThan(1900);
      expect(await service.storedPlants()).toEqual([plant]);
    });

    test(
      title('repeats the same plant after a response that is cut off, or with a date to wait for'),
      async () => {
        const date = new Date(Date.now() + 3000).toUTCString();
        const refusal = { status: 503, body: '{"error":', isCut: true } as const;
        gateway.faults.push('cut', refusal, { status: 503, retryAfter: date });
        const { exitCode, output } = await run(PLANTS[0]!);
        expect(output).not.toMatch(RAW);
        expect(exitCode).toBe(0);
        expect(gateway.requests).toHaveLength(4);
        expect(new Set(gateway.requests.map(({ body }) => body)).size).toBe(1);
      },
    );

    test(title('says in one line that an id is taken, or why a request failed'), async () => {
      const [plant] = PLANTS;
      await run(plant!);
      const taken = await run({ ...plant!, name: 'other' });
      expect(taken).toEqual({
        exitCode: 1,
        output: expect.stringMatching(/^The id .*is taken\.\n$/),
      });
      const unauthorized = await run(plant!, { PLANT_STORE_TOKEN: 'wrong' });
      expect(unauthorized).toEqual({
        exitCode: 1,
        output: expect.stringMatching(/^.*(40101|token).*\n$/),
      });
      expect(await service.storedPlants()).toEqual([plant]);
    });

    test.each([
      [502, '<html>\n<h1>Oops</h1>'],
      [200, '<html>\n<h1>Oops</h1>'],
      [200, '{}'],
      [400, '{"error":'],
      [404, '{"name":"Acer","message":"There is no such page."}'],
      [500, '{"message":null}'],
    ])(title('says so when a %d is not a response of the service: %j'), async (status, body) => {
      gateway.faults.push(...Array<GatewayFault>(11).fill({ status, body }));
      const { exitCode, output } = await run(PLANTS[0]!);
      expect(exitCode).not.toBe(0);
      expect(output).toMatch(status === 502 ? AWAY : NOT_OURS);
      expect(output).not.toMatch(RAW);
      if (status < 500) expect(gateway.requests).toHaveLength(1);
      expect(await service.storedPlants()).toEqual([]);
    });

    test(
      title('shows its usage and sends nothing without a plant, or with a forgotten quote'),
      async () => {
        for (const args of [[], [...argumentsOf(PLANTS[3]!), 'Acer']]) {
          const { exitCode, output } = await runWith(args);
          expect(exitCode).not.toBe(0);
          expect(output).toContain('Usage: ');
          expect(output).not.toMatch(RAW);
        }
        expect(gateway.requests).toEqual([]);
      },
    );

    test(title('stores nothing without a name, or if the id is no integer of int64'), async () => {
      const ids = ['', ' ', '0x10', '1_000', '1.5', '+1', '007', '١', '9223372036854775808'];
      for (const plant of [{ id: '1' }, ...ids.map((id) => ({ id, name: 'Acer' }))]) {
        const { exitCode, output } = await run(plant);
        expect(exitCode).not.toBe(0);
        expect(output).toMatch(/Usage: |40004|40005|not a NewPlant/);
        expect(output).not.toMatch(RAW);
      }
      expect(await service.storedPlants()).toEqual([]);
    });

    test(title('takes an address that ends with a slash'), async () => {
      const [plant] = PLANTS;
      expect(await run(plant!, { PLANT_STORE_URL: `${gateway.url}/` })).toMatchObject({
        exitCode: 0,
      });
      expect(await service.storedPlants()).toEqual([plant]);
    });

    test(title('names the variable when there is no token'), async () => {
      const { exitCode, output } = await run(PLANTS[0]!, { PLANT_STORE_TOKEN: undefined! });
      expect(exitCode).not.toBe(0);
      expect(output).toMatch(/Set PLANT_STORE_TOKEN|PLANT_STORE_TOKEN: Set it/);
      expect(output).not.toMatch(RAW);
      expect(gateway.requests).toEqual([]);
    });
  });
}
