import fastify from 'fastify';
import pg from 'pg';

interface NewPlant {
  id: number;
  name: string;
  tag?: string;
}

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] });
const app = fastify();

const plant = { name: { type: 'string' }, tag: { type: 'string' } };
const schema = {
  body: {
    type: 'object',
    required: ['id', 'name'],
    properties: { id: { type: 'integer' }, ...plant },
  },
  response: { 200: { type: 'object', properties: plant } },
};

app.post<{ Body: NewPlant }>('/plants', { schema }, async ({ body: { id, name, tag } }) => {
  await pool.query(
    'INSERT INTO plants (id, name, tag) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
    [id, name, tag],
  );
  return { name, tag };
});

await app.listen({ port: Number(process.env['PORT']), host: '127.0.0.1' });
