import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { ScriptedPool } from '../../test/setup/database/scripted-pool.js';
import { PoolMetrics } from './pool-metrics.js';
import { poolOf } from './run-statement.js';

const pool = new ScriptedPool();

it('the metrics of a pool count its connections by state, and the statements that wait', async () => {
  const dataSource = await pool.start(undefined, 3);
  const registry = new Registry();
  void new PoolMetrics(dataSource, registry);
  const take = () => poolOf(dataSource).connect();
  const clients = await Promise.all([take(), take(), take()]);
  clients.pop()!.release();
  const idle = await registry.metrics();
  clients.push(await take());
  const waiting = [take(), take()];
  const busy = await registry.metrics();
  for (const client of clients) client.release();
  for (const client of await Promise.all(waiting)) client.release();
  expect(idle).toBe(`\
# HELP plant_store_database_connections Connections of the pool, by state.
# TYPE plant_store_database_connections gauge
plant_store_database_connections{state="idle"} 1
plant_store_database_connections{state="busy"} 2

# HELP plant_store_database_waiting Statements that wait for a connection of the pool.
# TYPE plant_store_database_waiting gauge
plant_store_database_waiting 0
`);
  expect(busy).toContain('plant_store_database_connections{state="busy"} 3\n');
  expect(busy).toContain('plant_store_database_waiting 2\n');
});
