import { expect, it } from '@jest/globals';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { until } from '../../test/setup/time/until.js';
import { patientConfig } from '../../test/setup/database/patient.js';
import { StartError } from '../errors/start-error.js';
import { distributeTable } from './distribute-table.js';

const database = new UnitDatabase();

const distribute = () => distributeTable(patientConfig({ url: database.url }), 'plants');

/** The names that Citus has in a database, with functions that record their calls. */
const installCitus = async (workers: number) => {
  await database.query(
    `CREATE TABLE plants (id bigint);
     CREATE TABLE calls (call text, statement_timeout text, transaction xid8 DEFAULT pg_current_xact_id());
     CREATE TABLE pg_extension AS SELECT 'citus' AS extname;
     CREATE TABLE pg_dist_partition (logicalrelid regclass, partmethod text);
     CREATE TABLE pg_dist_shard (logicalrelid regclass, shardid int);
     CREATE TABLE pg_dist_shard_placement (shardid int, nodename text, nodeport int);
     INSERT INTO pg_dist_shard VALUES ('plants', 1), ('plants', 2), ('plants', 3), ('calls', 4);
     INSERT INTO pg_dist_shard_placement VALUES (1, 'a', 1), (2, 'a', 2), (3, 'a', 1), (3, 'a', 2), (4, 'b', 1);
     CREATE FUNCTION citus_get_active_worker_nodes() RETURNS SETOF int LANGUAGE sql AS
       'SELECT generate_series(1, ${workers})';
     CREATE FUNCTION create_distributed_table(name text, col text) RETURNS void LANGUAGE sql AS
       $$ INSERT INTO calls VALUES ('distribute ' || name || ' by ' || col, current_setting('statement_timeout'));
          INSERT INTO pg_dist_partition VALUES (name::regclass, 'h') $$;
     CREATE FUNCTION truncate_local_data_after_distributing_table(name text) RETURNS void LANGUAGE sql AS
       $$ INSERT INTO calls VALUES ('truncate ' || name, current_setting('statement_timeout')) $$`,
  );
  // The tables above hide those of Postgres.
  await database.set('search_path', 'public, pg_catalog');
  await database.set('statement_timeout', '5000');
};

const calls = () =>
  database.query(
    `SELECT call, statement_timeout AS limit, transaction = min(transaction) OVER () AS together
     FROM calls ORDER BY ctid`,
  );

it('a table is distributed by its id, without a time limit, and leaves no rows behind', async () => {
  await installCitus(2);
  expect(await distribute()).toEqual({ shards: 3, servers: 2, wasDistributed: false });
  expect(await calls()).toEqual([
    { call: 'distribute plants by id', limit: '0', together: true },
    { call: 'truncate plants', limit: '0', together: true },
  ]);
});

it('a table that is distributed already stays as it is', async () => {
  await installCitus(2);
  await database.query(`INSERT INTO pg_dist_partition VALUES ('plants', 'h')`);
  expect(await distribute()).toEqual({ shards: 3, servers: 2, wasDistributed: true });
  expect(await calls()).toEqual([]);
});

it('a database without Citus is refused, with the steps to install it', async () => {
  const outcome = distribute();
  await expect(outcome).rejects.toBeInstanceOf(StartError);
  await expect(outcome).rejects.toThrow(
    'The table plants was not distributed: the database has no extension citus. Install Citus, run CREATE EXTENSION citus',
  );
});

it('Citus without workers is refused', async () => {
  await installCitus(0);
  const outcome = distribute();
  await expect(outcome).rejects.toBeInstanceOf(StartError);
  await expect(outcome).rejects.toThrow(
    'The table plants was not distributed: Citus has no workers. Add them with citus_add_node.',
  );
  expect(await calls()).toEqual([]);
});

it('the connection is closed in the end, also after a failure', async () => {
  await distribute().catch(() => undefined);
  // All but the connection of the test.
  const others = () =>
    database.query(
      'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
  await until(async () => (await others()).length === 0);
});
