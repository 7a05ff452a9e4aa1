import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { holdTime } from '../test/setup/time/held-timers.js';
import { importWithWaits } from '../test/setup/time/held-waits.js';
import { openServer } from '../test/setup/http/open-server.js';
import { useResources } from '../test/setup/jest/resources.js';
import { chainsSettled, untilSettled } from '../test/setup/time/settled.js';
import { LifecycleService } from './http/lifecycle.service.js';

const resources = useResources();

const { stopApp } = await importWithWaits(() => import('./shutdown.js'));

const IDLE_GRACE_MS = 1000;
const CLOSE_TIMEOUT_MS = 1000;
const DELAY_MS = 3000;
const TIMEOUT_MS = 5000;

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const HELD_REQUEST = 'GET /held HTTP/1.1\r\nHost: x\r\n\r\n';

describe('a stop', () => {
  let lifecycle: LifecycleService;
  let server: Server;
  let port: number;
  /** The responses to the requests in flight. */
  let held: ServerResponse[];
  let closeApp: jest.Mock<() => Promise<void>>;
  let hasEnded: boolean;

  // Network events come from Node itself, whose timers and ticks are not these.
  beforeEach(async () => {
    holdTime();
    lifecycle = new LifecycleService();
    held = [];
    closeApp = jest.fn(() => Promise.resolve());
    hasEnded = false;
    server = createServer((request, response: ServerResponse) =>
      lifecycle.enter(request, response, () => {
        if (request.url === '/held') held.push(response);
        else response.end('done');
      }),
    );
    ({ port } = await openServer(resources, server));
  });
  afterEach(() => void jest.useRealTimers());

  /** Lets time pass, and then the few turns of the event loop that a step of the stop takes. */
  async function pass(milliseconds: number): Promise<void> {
    jest.advanceTimersByTime(milliseconds);
    await chainsSettled();
  }

  function stop(shutdownDelay = 0, shutdownTimeout = TIMEOUT_MS): void {
    const app = { get: () => lifecycle, getHttpServer: () => server, close: closeApp };
    void stopApp(app as unknown as NestExpressApplication, {
      shutdownDelay,
      shutdownTimeout,
    }).then(() => (hasEnded = true));
  }

  /** Stops, and expects the connection to stay open until the time is over; it is the last one, so the stop then ends. */
  async function expectStopToCloseAfter(milliseconds: number, socket: Socket): Promise<void> {
    stop();
    await pass(0);
    await pass(milliseconds - 1);
    expect(socket.destroyed).toBe(false);
    await pass(1);
    expect(socket.destroyed).toBe(true);
    expect(hasEnded).toBe(true);
  }

  async function open(): Promise<{ client: Socket; socket: Socket }> {
    const client = connect(port, '127.0.0.1');
    client.on('error', () => undefined);
    const [socket] = (await once(server, 'connection')) as [Socket];
    return { client, socket };
  }

  /** A client whose connection is idle after a first response. */
  async function openIdle(): Promise<{ client: Socket; socket: Socket }> {
    const opened = await open();
    opened.client.write(REQUEST);
    await once(opened.client, 'data');
    return opened;
  }

  it('accepts connections until the delay is over, and not longer', async () => {
    stop(DELAY_MS);
    await pass(DELAY_MS - 1);
    expect(server.listening).toBe(true);
    await pass(1);
    expect(server.listening).toBe(false);
  });

  it('responds to a request that was in transit on an idle connection', async () => {
    const { client } = await openIdle();
    stop();
    await pass(0);
    await pass(IDLE_GRACE_MS - 1);
    client.write(REQUEST);
    expect(await text(client)).toMatch(/^HTTP\/1.1 200 .*\r\nConnection: close\r\n/s);
    await untilSettled(() => hasEnded);
  });

  it('closes a connection that stays idle for a second', async () => {
    const { socket } = await openIdle();
    await expectStopToCloseAfter(IDLE_GRACE_MS, socket);
  });

  it('refuses a request that is in flight when the timeout is over, which begins after the delay', async () => {
    const { client } = await open();
    client.write(HELD_REQUEST);
    await untilSettled(() => held.length > 0);
    stop(DELAY_MS);
    await pass(DELAY_MS);
    await pass(TIMEOUT_MS - 1);
    expect(held[0]!.headersSent).toBe(false);
    await pass(1);
    expect(held[0]!.headersSent).toBe(true);
    expect(await text(client)).toMatch(/^HTTP\/1.1 503 .*\b50302\b/s);
    await untilSettled(() => hasEnded);
  });

  it('closes a connection whose request is incomplete when the time is over', async () => {
    const { client, socket } = await open();
    client.write(REQUEST.slice(0, -2));
    await untilSettled(() => socket.bytesRead > 0);
    await expectStopToCloseAfter(TIMEOUT_MS, socket);
  });

  it('ends a second after it began to close a database that is frozen', async () => {
    closeApp.mockReturnValue(new Promise(() => {}));
    stop();
    await pass(0);
    expect(closeApp).toHaveBeenCalledTimes(1);
    expect(jest.getTimerCount()).toBe(1); // no other limit is left
    await pass(CLOSE_TIMEOUT_MS - 1);
    expect(hasEnded).toBe(false);
    await pass(1);
    expect(hasEnded).toBe(true);
  });
});
