import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { patientConfig } from '../setup/database/patient.js';
import { Shards } from '../../src/database/shards.js';
import { copyOut } from '../../src/database/snapshot.js';
import { startOn, stop, type BuiltService } from '../setup/service/built-service.js';
import { createToken } from '../setup/service/tokens.js';
import {
  openCitusCluster,
  whyNoCitus,
  type CitusCluster,
} from '../setup/database/citus-cluster.js';
import { readStoredPlants } from '../setup/database/stored-plants.js';
import { runCommand } from '../setup/process/command.js';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { contradictions, send, type Sent } from '../setup/model/contradictions.js';
import { startLoad } from '../setup/model/load.js';
import { useResources } from '../setup/jest/resources.js';
import { generator, printedSeed } from '../setup/model/random.js';
import { until } from '../setup/time/until.js';

const isForeign = process.env['TEST_CITUS_URL'] !== undefined;
const missing = isForeign ? undefined : await whyNoCitus();
if (missing !== undefined) {
  process.stderr.write(
    `NOT RUN: the tests on shards. ${missing}, and TEST_CITUS_URL is not set.\n`,
  );
}
const onCitus = missing === undefined ? describe : describe.skip;
/** Only servers of its own may be killed. */
const itKills = isForeign ? it.skip : it;
if (isForeign) process.stderr.write('NOT RUN: the kills, because the cluster is not our own.\n');

const resources = useResources();

onCitus('plants on Citus', () => {
  let cluster: CitusCluster;
  let token: string;

  async function distribute(): Promise<string> {
    const command = runCommand(['dist/cli.js', 'migrate', '--distribute'], {
      DATABASE_URL: cluster.url,
    });
    expect(await command.exit()).toBe(0);
    return command.stderr;
  }

  beforeAll(async () => {
    cluster = await openCitusCluster();
    expect(await distribute()).toMatch(/^Distributed the plants\. Shards: \d+, servers: 2\.\n$/);
    token = await createToken(cluster.url);
  });
  afterAll(() => cluster?.close());

  it('migrate --distribute may be run again', async () => {
    expect(await distribute()).toMatch(/^The plants were distributed before\. Shards: \d+, /);
  });

  it('migrate --distribute moves the plants that are stored already', async () => {
    await cluster.query(`SELECT undistribute_table('plants')`);
    await cluster.query(`INSERT INTO plants SELECT i, 'old' FROM generate_series(1, 100) AS i`);
    expect(await distribute()).toMatch(/^Distributed the plants\./);
    const count = 'count(*)::int AS count FROM';
    expect(await cluster.query(`SELECT ${count} plants`)).toEqual([{ count: 100 }]);
    // Without its plan, the statement would read the shards, too.
    const [local] = await cluster.query<{ bytes: string }>(
      `SELECT pg_relation_size('plants')::text AS bytes`,
    );
    expect(local).toEqual({ bytes: '0' });
  });

  it('plants export writes the plants of all shards', async () => {
    await cluster.query(`TRUNCATE plants`);
    await cluster.query(`
      INSERT INTO plants SELECT i, repeat('a', 1000), 'b' FROM generate_series(1, 20000) AS i`);
    const command = runCommand(['dist/cli.js', 'plants', 'export', '--format', 'ndjson'], {
      DATABASE_URL: cluster.url,
    });
    expect(await command.exit()).toBe(0);
    expect(command.stderr).toMatch(/^20,000 plants exported, in /m);
    const lines = command.stdout.trimEnd().split('\n');
    const expected = Array.from(
      { length: 20_000 },
      (_, i) => `{"id":${i + 1},"name":"${'a'.repeat(1000)}","tag":"b"}`,
    );
    expect(lines.sort()).toEqual(expected.sort());
  });

  it('plants export has one moment for all servers: it waits for the plants that are being stored', async () => {
    await cluster.query(`TRUNCATE plants`);
    const writer = new pg.Client({ connectionString: cluster.url });
    try {
      await writer.connect();
      await writer.query('BEGIN');
      await writer.query(`INSERT INTO plants SELECT i, 'a' FROM generate_series(1, 50) AS i`);
      const command = runCommand(['dist/cli.js', 'plants', 'export'], {
        DATABASE_URL: cluster.url,
      });
      const isWaiting = `SELECT 1 FROM pg_locks WHERE relation = 'plants'::regclass AND NOT granted`;
      await until(async () => (await cluster.query(isWaiting)).length > 0);
      await writer.query(`INSERT INTO plants SELECT i, 'a' FROM generate_series(51, 100) AS i`);
      await writer.query('COMMIT');
      expect(await command.exit()).toBe(0);
      expect(command.stderr).toMatch(/^100 plants exported, in /m);
    } finally {
      await writer.end();
    }
  });

  it('plants export has no plant of any server that is stored after it began', async () => {
    await cluster.query(`TRUNCATE plants; CREATE TABLE gate (id bigint)`);
    const guard = new pg.Client({ connectionString: cluster.url });
    try {
      await guard.connect();
      await guard.query('BEGIN; LOCK TABLE gate');
      const rows = copyOut(
        patientConfig({ url: cluster.url }),
        'plants',
        'COPY (SELECT id FROM plants UNION ALL SELECT id FROM gate) TO STDOUT',
        new AbortController().signal,
        () => Promise.resolve(),
      );
      const isWaiting = `SELECT 1 FROM pg_locks WHERE relation = 'gate'::regclass AND NOT granted`;
      await until(async () => (await cluster.query(isWaiting)).length > 0);
      await cluster.query(`INSERT INTO plants SELECT i, 'a' FROM generate_series(1, 100) AS i`);
      await guard.query('COMMIT');
      expect(await rows).toBe(0);
    } finally {
      await guard.end();
      await cluster.query('DROP TABLE gate');
    }
  });

  it('each plant is in the shard that the service computes', async () => {
    const shards = await cluster.query<{ min: number }>(
      `SELECT shardminvalue::int AS min FROM pg_dist_shard
       WHERE logicalrelid = 'plants'::regclass ORDER BY min`,
    );
    const computed = new Shards(shards.map(({ min }) => min));
    const rows = await cluster.query<{ id: string; min: number }>(
      `SELECT id::text AS id, shardminvalue::int AS min
       FROM (SELECT ('x' || left(md5(i::text), 16))::bit(64)::bigint FROM generate_series(1, 1000) AS i) AS ids (id)
       JOIN pg_dist_shard ON shardid = get_shard_id_for_distribution_column('plants', id)`,
    );
    expect(rows.map(({ id }) => shards[computed.indexOf(BigInt(id))]!.min)).toEqual(
      rows.map(({ min }) => min),
    );
  });

  describe.each([
    ['by shard, as the service finds out', {}, 'over 32 shards: batches of up to 32 plants, 9 at'],
    ['one by one', { DATABASE_BATCH_SIZE: '1' }, 'over 32 shards: batches of up to 1 plants, 9 at'],
  ])('sent %s', (_way, env, logged) => {
    let services: [BuiltService, BuiltService];

    beforeAll(async () => {
      const settings = { DATABASE_TIMEOUT_MS: '10000', ...env };
      services = [await startOn(cluster.url, settings), await startOn(cluster.url, settings)];
    });
    beforeEach(() => cluster.query('TRUNCATE plants'));
    afterAll(async () => {
      for (const service of services) await stop(service);
    });

    /** The port of the worker that has each id. */
    async function portsOf(ids: readonly number[]): Promise<Map<number, number>> {
      const rows = await cluster.query<{ id: number; port: number }>(
        `SELECT id::int AS id, nodeport AS port FROM unnest($1::int[]) AS id
         JOIN pg_dist_shard_placement
           ON shardid = get_shard_id_for_distribution_column('plants', id)`,
        [ids],
      );
      return new Map(rows.map(({ id, port }) => [id, port]));
    }

    const stored = () => readStoredPlants(cluster);
    const sendAll = (plants: readonly { id: number; name: string; tag?: string }[]) =>
      Promise.all(plants.map((plant, i) => send(services[i % 2]!, token, plant)));

    it('the log says how they are sent', async () => {
      await services[0].command.waitFor(/The plants are distributed over/);
      expect(services[0].command.stdout).toContain(logged);
    });

    it('of racers for one id, exactly one wins', async () => {
      for (let round = 0; round < 6; round++) {
        const ids = Array.from({ length: 40 }, (_, i) => round * 40 + i);
        const history = await sendAll(
          Array.from({ length: 12 }, (_, racer) =>
            ids.map((id) => ({ id, name: `racer ${racer}` })),
          ).flat(),
        );
        const outcomes = ids.map((id) =>
          history.filter((sent) => sent.id === id).map(({ outcome }) => outcome),
        );
        expect(outcomes.map((all) => all.toSorted())).toEqual(
          ids.map(() => [200, ...Array<number>(11).fill(40006)]),
        );
        expect(
          contradictions(
            history,
            (await stored()).filter(({ id }) => Number(id) >= round * 40),
          ),
        ).toEqual([]);
      }
    });

    it('repeats and conflicts have the outcomes that they have on one server', async () => {
      const random = generator(printedSeed('20 rounds of 50 plants on shards'));
      const names = ['a', 'a ', '', 'Ä', '𝄞', "'; --", 'x'.repeat(3000)];
      const history: Sent[] = [];
      for (let round = 0; round < 20; round++) {
        const plants = Array.from({ length: 50 }, () => ({
          id: random(150) * 61_356_675_071_973 - 4_503_599_627_370_496,
          name: names[random(names.length)]!,
          ...(random(2) === 0 && { tag: ['', 't', 'u'][random(3)]! }),
        }));
        history.push(...(await sendAll(plants)));
      }
      expect(contradictions(history, await stored())).toEqual([]);
      expect(new Set(history.map(({ outcome }) => outcome))).toEqual(new Set([200, 40006]));
    });

    itKills('a dead worker refuses its own plants, and no others', async () => {
      const [worker, other] = cluster.servers!.workers;
      const ids = Array.from({ length: 200 }, (_, i) => i);
      const portOf = await portsOf(ids);
      expect(new Set(portOf.values())).toEqual(new Set([worker!.port, other!.port]));
      const isAlive = (id: number) => portOf.get(id) === other!.port;

      const plants = ids.map((id) => ({ id, name: 'a' }));
      // Half of them are repeats when the worker is dead.
      const history = await sendAll(plants.slice(0, 100));
      await worker!.kill();
      const outcomes = await sendAll(plants);
      expect(outcomes.map(({ outcome }) => outcome)).toEqual(
        ids.map((id) => (isAlive(id) ? 200 : 50300)),
      );
      expect(await (await fetchDocumented(`${services[0].url}/health/ready`)).json()).toEqual({
        status: 'ok',
      });
      await worker!.start();
      await until(async () => {
        const again = await sendAll(plants);
        history.push(...again);
        return again.every(({ outcome }) => outcome === 200);
      });
      expect(contradictions([...history, ...outcomes], await stored())).toEqual([]);
    });

    itKills('a worker that hangs refuses its own plants, and soon no others', async () => {
      const [worker, other] = cluster.servers!.workers;
      const ids = Array.from({ length: 100 }, (_, i) => i);
      const portOf = await portsOf(ids);
      const service = await startOn(cluster.url, { ...env, DATABASE_TIMEOUT_MS: '1000' });
      await worker!.freeze();
      const history: Sent[] = [];
      // At first, the batches of each shard that hangs wait for the timeout, and others wait behind them.
      await until(async () => {
        const sent = await Promise.all(ids.map((id) => send(service, token, { id, name: 'a' })));
        history.push(...sent);
        return ids.every((id, i) => portOf.get(id) === worker!.port || sent[i]!.outcome === 200);
      });
      expect(
        history.filter(({ outcome }) => outcome === 200).map(({ id }) => portOf.get(id)),
      ).toEqual(expect.not.arrayContaining([worker!.port]));
      expect(other!.port).not.toBe(worker!.port);
      await worker!.kill();
      await worker!.start();
      await until(async () => (await send(service, token, { id: 0, name: 'a' })).outcome === 200);
      expect(contradictions(history, await stored())).toEqual([]);
      await stop(service);
    });

    itKills(
      'a plant whose wait for a standby is canceled on a worker is not acknowledged',
      async () => {
        const { workers } = cluster.servers!;
        const waitForStandby = async (name: string) => {
          for (const worker of workers) {
            await worker.query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
            await worker.query('SELECT pg_reload_conf()');
          }
        };
        const cancelWaits = async () => {
          const canceled = await Promise.all(
            workers.map((worker) =>
              worker.query(
                `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
              ),
            ),
          );
          return canceled.flat().length > 0;
        };
        await waitForStandby('ghost');
        for (let attempt = 0; attempt < 2; attempt++) {
          const sent = send(services[0], token, { id: 7, name: 'a' });
          await until(cancelWaits);
          expect(await sent).toMatchObject({ outcome: 50300 });
        }
        await waitForStandby('');
        expect(await send(services[0], token, { id: 7, name: 'a' })).toMatchObject({
          outcome: 200,
        });
      },
    );

    itKills(
      'a dead coordinator: 503, then recovery, and nothing acknowledged is lost',
      async () => {
        const { coordinator } = cluster.servers!;
        let turn = 0;
        const load = startLoad(resources, () => services[turn++ % 2]!.url, token);
        await load.progress(200);
        await coordinator.kill();
        expect(await send(services[0], token, { id: 1, name: 'a' })).toMatchObject({
          outcome: 50300,
        });
        await coordinator.start();
        await load.progress(200);
        await load.stop();
        expect([...load.failures.keys()]).toEqual([503]);
        const ids = new Set((await stored()).map(({ id }) => id));
        expect([...load.acknowledged].filter((id) => !ids.has(id))).toEqual([]);
      },
    );
  });
});
