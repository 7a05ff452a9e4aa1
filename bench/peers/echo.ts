import { createServer } from 'node:http';

/** The least that Node's HTTP server can do with a body: every other contender costs more. */
createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': body.length,
    });
    response.end(body);
  });
}).listen(Number(process.env['PORT']), '127.0.0.1');
