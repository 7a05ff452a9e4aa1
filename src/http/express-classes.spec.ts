import { createServer } from 'node:http';
import express, { type Request, type Response } from 'express';
import { expect, it } from '@jest/globals';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { sendRaw } from '../../test/setup/http/raw-http.js';
import { classesOf } from './express-classes.js';

const resources = useResources();

it('requests and responses have the methods of Express, which changes no prototype', async () => {
  const app = express();
  const handled: [Request, Response][] = [];
  app.get('/', (request, response) => {
    handled.push([request, response]);
    response.type('text').send(request.get('X-Name'));
  });
  const classes = classesOf(app);
  const prototypes = [classes.IncomingMessage!.prototype, classes.ServerResponse!.prototype];
  const hasPrototypes = (objects: object[]) =>
    objects.every((object, i) => Object.getPrototypeOf(object) === prototypes[i]);
  const server = createServer(classes, (request, response) => {
    expect(hasPrototypes([request, response])).toBe(true);
    app(request, response);
  });
  const { port } = await openServer(resources, server);

  const response = await sendRaw(port, 'GET / HTTP/1.1\r\nHost: x\r\nX-Name: Rosa\r\n\r\n');
  expect(response).toMatchObject({ status: 200, body: 'Rosa' });
  expect(hasPrototypes(handled[0]!)).toBe(true);
});
