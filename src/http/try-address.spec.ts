import { createServer } from 'node:net';
import { expect, it } from '@jest/globals';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { findFreePorts } from '../../test/setup/process/ports.js';
import { tryAddress } from './try-address.js';

const resources = useResources();

const LOOPBACK = '127.0.0.1';

it('a free address is free again when its port is returned', async () => {
  const [port] = (await findFreePorts(1)) as [number];
  expect(await tryAddress(LOOPBACK, port)).toBe(port);
  expect(await tryAddress(LOOPBACK, port)).toBe(port);
});

it('with port 0, the port that the system chose is returned', async () => {
  expect(await tryAddress(LOOPBACK, 0)).toBeGreaterThan(0);
});

it('a taken address is reported with the error of the socket', async () => {
  const { port } = await openServer(resources, createServer());
  await expect(tryAddress(LOOPBACK, port)).rejects.toMatchObject({ code: 'EADDRINUSE', port });
});
