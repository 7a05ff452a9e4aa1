import express from 'express';
import pg from 'pg';

interface NewPlant {
  id: number;
  name: string;
  tag?: string;
}

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] });
const app = express();
app.use(express.json());

app.post('/plants', async (request, response) => {
  const { id, name, tag } = request.body as NewPlant;
  if (!Number.isInteger(id) || typeof name !== 'string') {
    response.status(400).json({ error: 'id and name are required' });
    return;
  }
  await pool.query(
    'INSERT INTO plants (id, name, tag) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
    [id, name, tag],
  );
  response.json({ name, tag });
});

app.listen(Number(process.env['PORT']), '127.0.0.1');
