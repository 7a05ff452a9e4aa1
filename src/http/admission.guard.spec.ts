import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Module, UseGuards } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { Registry } from 'prom-client';
import {
  requestBytes,
  startReceiver,
  type Exchange,
  type Receiver,
} from '../../test/setup/http/receiver.js';
import { readConfig } from '../config/config.js';
import { ConfigModule } from '../config/config.module.js';
import { overloaded } from '../errors/errors.js';
import { ConnectionClosed } from '../errors/service-error.js';
import { createLogger } from '../logging/logger.js';
import { LoggingModule } from '../logging/logging.module.js';
import { AdmissionGuard, PendingRequests } from './admission.guard.js';
import { HttpModule } from './http.module.js';
import { whenClosed } from './when-closed.js';

describe('the limit of requests in flight', () => {
  let receiver: Receiver;
  let registry: Registry;
  let guard: AdmissionGuard;

  beforeAll(async () => {
    receiver = await startReceiver();
  });
  afterAll(() => receiver.close());

  beforeEach(() => {
    registry = new Registry();
    guard = new AdmissionGuard(
      new PendingRequests(readConfig({ MAX_PENDING_REQUESTS: '2' }), registry),
    );
  });

  const send = () => receiver.send(requestBytes([]));
  const admit = ({ request, response }: Exchange) =>
    guard.canActivate(new ExecutionContextHost([request, response]));
  const closed = ({ response }: Exchange) =>
    new Promise<void>((resolve) => whenClosed(response, resolve));
  const inFlight = async () =>
    (await registry.getSingleMetric('plant_store_pending_requests')!.get()).values[0]!.value;

  it('admits as many as it says, and refuses the next one as overload', async () => {
    expect(admit(await send())).toBe(true);
    expect(admit(await send())).toBe(true);
    const third = await send();
    expect(() => admit(third)).toThrow(expect.objectContaining({ code: overloaded.code }));
  });

  it('admits another request when one has its response', async () => {
    const first = await send();
    admit(first);
    admit(await send());
    first.response.end();
    await closed(first);
    expect(admit(await send())).toBe(true);
  });

  it('admits another request when a client closed its connection', async () => {
    const first = await send();
    admit(first);
    admit(await send());
    first.client.destroy();
    await closed(first);
    expect(admit(await send())).toBe(true);
  });

  it('takes no place for a request whose client has closed its connection already', async () => {
    const gone = await send();
    gone.client.destroy();
    await closed(gone);
    expect(() => admit(gone)).toThrow(ConnectionClosed);
    expect(await inFlight()).toBe(0);
  });

  it('takes no place for a request that it refuses', async () => {
    admit(await send());
    admit(await send());
    const refused = await send();
    expect(() => admit(refused)).toThrow();
    expect(await inFlight()).toBe(2);
  });

  it('has a metric of the places that are taken, which an operator can tell apart', async () => {
    expect(await inFlight()).toBe(0);
    const first = await send();
    admit(first);
    expect(await registry.metrics()).toBe(
      [
        '# HELP plant_store_pending_requests Requests in flight to operations: those between the check of their token and their response.',
        '# TYPE plant_store_pending_requests gauge',
        'plant_store_pending_requests 1',
        '',
      ].join('\n'),
    );
    first.response.end();
    await closed(first);
    expect(await inFlight()).toBe(0);
  });

  it('is one limit for the controllers of all modules', async () => {
    @Controller()
    @UseGuards(AdmissionGuard)
    class TestController {}
    @Module({ controllers: [TestController] })
    class FirstModule {}
    @Module({ controllers: [TestController] })
    class SecondModule {}
    @Module({
      imports: [
        ConfigModule.register(readConfig({ MAX_PENDING_REQUESTS: '2' })),
        LoggingModule.register(createLogger({ level: 'silent' })),
        {
          module: class RegistryModule {},
          global: true,
          providers: [{ provide: Registry, useValue: registry }],
          exports: [Registry],
        },
        HttpModule,
        FirstModule,
        SecondModule,
      ],
    })
    class AppModule {}
    registry.clear();
    const app = await NestFactory.createApplicationContext(AppModule, {
      logger: false,
      abortOnError: false,
    });
    const guards = [FirstModule, SecondModule].map((it) =>
      app.select(it).get(AdmissionGuard, { strict: true }),
    );
    expect(guards[0]).not.toBe(guards[1]);
    for (guard of guards) expect(admit(await send())).toBe(true);
    const third = await send();
    for (guard of guards) expect(() => admit(third)).toThrow();
    expect(await inFlight()).toBe(2);
    await app.close();
  });
});
