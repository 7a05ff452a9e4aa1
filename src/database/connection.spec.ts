import { expect, it, jest } from '@jest/globals';
import { patientConfig } from '../../test/setup/database/patient.js';
import { holdTimers } from '../../test/setup/time/held-timers.js';
import { openScriptedPostgres, openServerIn } from '../../test/setup/database/scripted-postgres.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { settled } from '../../test/setup/time/settled.js';
import { untilClosed, withConnection } from './connection.js';

const resources = useResources();

const NO_LIMITS = { statement: 0, lock: 0 };

it('a connection of its own tells the server the name of the service', async () => {
  const server = await openServerIn(resources, { isPrimary: true });
  await withConnection(patientConfig({ url: server.url }), NO_LIMITS, (client) =>
    client.query('SELECT 1'),
  );
  expect(server.connections).toMatchObject([{ parameters: { application_name: 'plant-store' } }]);
  expect(server.statements).toMatchObject([{ text: 'SELECT 1' }]);
  await server.connections[0]!.closed;
});

it('a connection is closed at once if its work fails, although a statement has no response', async () => {
  const server = await openScriptedPostgres(resources, { run: () => new Promise(() => undefined) });
  const failing = withConnection(patientConfig({ url: server.url }), NO_LIMITS, (client) => {
    client.query('SELECT 1').catch(() => undefined);
    return Promise.reject(new Error('the reason'));
  });
  await expect(failing).rejects.toThrow('the reason');
  await server.connections[0]!.closed;
});

it('the end of a connection is waited for, but only a second: a frozen server never closes its side', async () => {
  holdTimers();
  try {
    const states: string[] = [];
    const closing = Promise.withResolvers<void>();
    const closed = untilClosed(closing.promise).then(() => states.push('closed'));
    void untilClosed(new Promise(() => undefined)).then(() => states.push('frozen'));
    await settled();
    expect(states).toEqual([]);
    closing.resolve();
    await closed;
    jest.advanceTimersByTime(999);
    await settled();
    expect(states).toEqual(['closed']);
    jest.advanceTimersByTime(1);
    await settled();
    expect(states).toEqual(['closed', 'frozen']);
  } finally {
    jest.useRealTimers();
  }
});
