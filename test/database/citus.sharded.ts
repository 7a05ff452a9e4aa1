import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { patientConfig } from '../setup/database/patient.js';
import { Shards } from '../../src/database/shards.js';
import { prepareDatabase } from '../../src/database/prepare-database.js';
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

  beforeAll(async () => {
    cluster = await openCitusCluster();
    await prepareDatabase(patientConfig({ url: cluster.url }), () => undefined);
    await cluster.query(`SELECT create_distributed_table('plants', 'id')`);
    token = await createToken(cluster.url);
  });
  afterAll(() => cluster?.close());

  it('plants export writes the plants of all shards', async () => {
    await cluster.query(`TRUNCATE plants`);
    await cluster.query(`
      INSERT INTO plants SELECT i, repeat('a', 1000), 'b' FROM generate_series(1, 20000) AS i`);
    const command = runCommand(['dist/cli.js', 'plants', 'export', '--format', 'ndjson'], {
      DATABASE_URL: cluster.url,
    });
    expect(await command.exit()).toBe(0);
    expect(command.stderr).toMatch(/^20,000 plants exported, .* in /m);
    const lines = command.stdout.trimEnd().split('\n');
    const expected = Array.from(
      { length: 20_000 },
      (_, i) => `{"id":${i + 1},"name":"${'a'.repeat(1000)}","tag":"b"}`,
    );
    expect(lines.sort()).toEqual(expected.sort());
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
    ['by shard', {}],
    ['one by one', { DATABASE_BATCH_SIZE: '1' }],
  ])('sent %s', (_way, env) => {
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
      expect(services[0].command.stdout).toContain('over 32 shards');
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
