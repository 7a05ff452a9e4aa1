import { describe, expect, it } from '@jest/globals';
import { Command } from 'commander';
import { readConfig } from '../config/config.js';
import { addPlantsCommands } from './plants-commands.js';

describe('plants load', () => {
  it('sends to the address of a service with default settings, if it gets no other one', () => {
    const program = new Command();
    addPlantsCommands(program, process, {});
    const load = program.commands.find((command) => command.name() === 'load')!;
    const { host, port } = readConfig({}).http;
    const address = `http://${host}:${port}`;
    expect(load.opts<{ url: URL }>().url.href).toBe(`${address}/`);
    expect(load.helpInformation()).toContain(`(default: ${address})`);
  });
});
