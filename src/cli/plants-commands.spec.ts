import { describe, expect, it } from '@jest/globals';
import { Command } from 'commander';
import { readConfig } from '../config/config.js';
import { addPlantsCommands } from './plants-commands.js';

describe('plants load', () => {
  const optionsOf = () => {
    const program = new Command();
    addPlantsCommands(program, process, {});
    return program.commands.find((command) => command.name() === 'load')!;
  };

  it('sends to the address of a service with default settings, if it gets no other one', () => {
    const load = optionsOf();
    const { host, port } = readConfig({}).http;
    const address = `http://${host}:${port}`;
    expect(load.opts<{ url: URL }>().url.href).toBe(`${address}/`);
    expect(load.helpInformation()).toContain(`(default: ${address}`);
  });

  it('sends to the address in PLANT_STORE_URL, as the samples do', async () => {
    process.env['PLANT_STORE_URL'] = 'https://plants.example.org';
    try {
      const load = optionsOf().action(() => undefined);
      await load.parseAsync(['plants.csv'], { from: 'user' });
      expect(load.opts<{ url: URL }>().url.href).toBe('https://plants.example.org/');
    } finally {
      delete process.env['PLANT_STORE_URL'];
    }
  });
});
