import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { holdTime } from '../../../test/setup/time/held-timers.js';
import { openServer } from '../../../test/setup/http/open-server.js';
import { useResources } from '../../../test/setup/jest/resources.js';
import { until } from '../../../test/setup/time/until.js';
import { LoadProgress } from './load-progress.js';
import { Load } from './load.js';
import { PlantClient } from './plant-client.js';
import { readPlantLines } from './plant-lines.js';
import { RefusedLines } from './refused-lines.js';

const resources = useResources();

const PLANT = '{"id":1,"name":"a"}';

describe('Load', () => {
  it('reads a file as it sends it, and never the whole file', async () => {
    const held: ServerResponse[] = [];
    let respond = (response: ServerResponse): void => void held.push(response);
    const server = createServer((request, response) => {
      void once(request.resume(), 'end').then(() => respond(response));
    });
    const client = new PlantClient(new URL((await openServer(resources, server)).url), 'x');
    const progress = new LoadProgress(new PassThrough(), undefined);
    const refused = new RefusedLines('/nowhere/plants.refused.csv', false);
    let lines = 0;
    const file = async function* () {
      while (lines++ < 1000) yield await Promise.resolve(Buffer.from(`${PLANT}\n`));
    };
    const load = new Load(client, progress, refused);
    const done = load.run(readPlantLines(file(), 'plants'));
    await until(() => held.length === 8);
    expect(lines).toBeLessThan(20);
    respond = (response) => void response.end(PLANT);
    held.forEach(respond);
    await done;
    await load.stop();
    progress.stop();
  });
});

describe('Load, after a 429 with Retry-After', () => {
  let send: jest.SpiedFunction<PlantClient['send']>;
  let progress: LoadProgress;
  let load: Load;
  let done: Promise<void>;

  beforeEach(async () => {
    holdTime();
    let requests = 0;
    const server = createServer((request, response) => {
      void once(request.resume(), 'end').then(() => {
        if (requests++ === 0) response.writeHead(429, { 'retry-after': '3600' }).end();
        else response.end(PLANT);
      });
    });
    const client = new PlantClient(new URL((await openServer(resources, server)).url), 'token');
    progress = new LoadProgress(new PassThrough(), undefined);
    const refused = new RefusedLines('/nowhere/plants.refused.csv', false);
    load = new Load(client, progress, refused);
    send = jest.spyOn(client, 'send');
    done = load.run(readPlantLines(PassThrough.from([Buffer.from(PLANT)]), 'plants'));
    await until(() => progress.waitingFor !== '');
  });
  afterEach(async () => {
    await done;
    await load.stop();
    progress.stop();
    jest.useRealTimers();
  });

  it('sends nothing for as long as the service says', async () => {
    await jest.advanceTimersByTimeAsync(3_599_999);
    expect(send).toHaveBeenCalledTimes(1);
    await jest.advanceTimersByTimeAsync(1);
    expect(send).toHaveBeenCalledTimes(2);
  });

  it('shows the reason for waiting until the service accepts plants again', async () => {
    expect(progress.waitingFor).toBe('429');
    await jest.advanceTimersByTimeAsync(3_600_000);
    await done;
    expect(progress.waitingFor).toBe('');
  });
});
