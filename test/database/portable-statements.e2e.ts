import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { poolOf } from '../../src/database/run-statement.js';
import { startService, type TestService } from '../setup/service/service.js';

/** The features that Citus, CockroachDB and YugabyteDB share: see docs/scaling.md. */
describe('the schema and the statements use only features that distributed engines support', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it('the table of plants has one key, and no triggers or sequences', async () => {
    const columns = await service.database.query(
      `SELECT column_name, data_type, column_default FROM information_schema.columns
       WHERE table_schema = current_schema() AND table_name = 'plants' ORDER BY ordinal_position`,
    );
    expect(columns).toEqual([
      { column_name: 'id', data_type: 'bigint', column_default: null },
      { column_name: 'name', data_type: 'text', column_default: null },
      { column_name: 'tag', data_type: 'text', column_default: null },
      { column_name: 'created_at', data_type: 'timestamp with time zone', column_default: 'now()' },
    ]);
    const [counts] = await service.database.query(
      `SELECT
         (SELECT count(*)::int FROM pg_constraint WHERE conrelid = 'plants'::regclass AND contype IN ('p', 'u', 'f', 'x')) AS keys,
         (SELECT count(*)::int FROM pg_index WHERE indrelid = 'plants'::regclass) AS indexes,
         (SELECT count(*)::int FROM pg_trigger WHERE tgrelid = 'plants'::regclass) AS triggers,
         (SELECT count(*)::int FROM pg_class WHERE relkind = 'S' AND relnamespace = current_schema()::regnamespace
            AND relname LIKE 'plants%') AS sequences`,
    );
    expect(counts).toEqual({ keys: 1, indexes: 1, triggers: 0, sequences: 0 });
  });

  it('the statements insert rows or find them by their key, and do nothing else', async () => {
    const pool = poolOf(service.app.get(DataSource));
    const statements = new Set<string>();
    const watched = new WeakSet<pg.PoolClient>();
    pool.on('acquire', (client) => {
      if (watched.has(client)) return;
      watched.add(client);
      const query = client.query.bind(client) as (...args: unknown[]) => Promise<pg.QueryResult>;
      client.query = ((config: string | { text: string }, ...rest: unknown[]) => {
        const text = typeof config === 'string' ? config : config.text;
        if (text.includes('plants')) statements.add(text.replaceAll(/\s+/g, ' ').trim());
        return query(config, ...rest);
      }) as typeof client.query;
    });
    await service.post('{"id":1,"name":"a"}');
    await service.post('{"id":1,"name":"b"}');
    // Until some of the plants have shared a batch.
    for (let id = 2; statements.size < 3; id += 20) {
      await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          service.post(JSON.stringify({ id: id + i, name: 'a' })),
        ),
      );
    }
    expect([...statements]).toEqual([
      'INSERT INTO plants (id, name, tag) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE false RETURNING id',
      'SELECT id, name, tag FROM plants WHERE id = ANY($1::bigint[])',
      'INSERT INTO plants (id, name, tag) SELECT id, name, CASE WHEN has_tag THEN tag END FROM unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[]) AS sent (id, name, tag, has_tag) ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE false RETURNING id',
    ]);
  });
});
