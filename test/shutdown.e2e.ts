import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { stopApp } from '../src/app.js';
import { openConnection, readAnswers } from './setup/raw-http.js';
import { startService, type TestService } from './setup/service.js';

const BODY = '{"id":1,"name":"a"}';

describe('a service that is told to stop', () => {
  let service: TestService;

  beforeEach(async () => {
    service = await startService();
  });
  afterEach(async () => {
    await service.proxy.close();
    await service.database.close();
  });

  const head = () =>
    [
      'POST /plants HTTP/1.1',
      'Host: x',
      `Authorization: Bearer ${service.token}`,
      'Content-Type: application/json',
      `Content-Length: ${BODY.length}`,
      'Expect: 100-continue',
      '',
      '',
    ].join('\r\n');

  it('answers the requests in flight, closes their connections and takes no new ones', async () => {
    const socket = await openConnection(service.port);
    socket.write(head());
    await readAnswers(socket, 1); // 100 Continue: the request is in flight
    const stopped = stopApp(service.app, 10_000);
    await expect(openConnection(service.port)).rejects.toThrow('ECONNREFUSED');
    socket.write(BODY);
    const answers = await readAnswers(socket);
    expect(answers).toMatchObject([{ status: 200, headers: { connection: 'close' } }]);
    await stopped;
    expect(await service.storedPlants()).toHaveLength(1);
  });

  it('cuts what is still open at the deadline', async () => {
    const socket = await openConnection(service.port);
    socket.write(head());
    await readAnswers(socket, 1);
    await stopApp(service.app, 50);
    expect(await service.storedPlants()).toEqual([]);
  });
});
