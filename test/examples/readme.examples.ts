import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ROOT, runProgram } from '../setup/process/command.js';
import { startService, type TestService } from '../setup/service/service.js';

describe('the samples of the README', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it.each([
    ['js', process.execPath, ['--input-type=module', '--eval']],
    ['python', 'python3', ['-c']],
  ])(
    'in %s stores the largest id exactly, and prints the response',
    async (kind, program, args) => {
      const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
      const code = readme.split(`\n\`\`\`${kind}\n`)[1]!.split('\n```')[0]!;
      // The test's service has another port. The sample also runs on Node 20 and in older browsers, which lack JSON.rawJSON.
      const here =
        (kind === 'js' ? 'delete JSON.rawJSON;\n' : '') +
        code.replace('http://127.0.0.1:3000', service.url);
      // As it is read from a file that was saved on Windows.
      const token = `${service.token}\r\n`;
      const command = runProgram(program, [...args, here], { PLANT_STORE_TOKEN: token });
      expect([await command.exit(), command.stderr]).toEqual([0, '']);
      expect(command.stdout).toContain('"Acer negundo"');
      expect(await service.storedPlants()).toEqual([
        { id: '9223372036854775807', name: 'Acer negundo', tag: 'Acer' },
      ]);
    },
  );

  it('is the plant of docs/clients.md, whose samples therefore also work afterwards', async () => {
    const clients = await readFile(join(ROOT, 'docs/clients.md'), 'utf8');
    const [line] = /^node examples\/.*$/m.exec(clients)!;
    const command = runProgram('sh', ['-c', line], {
      PLANT_STORE_TOKEN: service.token,
      PLANT_STORE_URL: service.url,
    });
    expect([await command.exit(), command.stderr]).toEqual([0, '']);
  });
});
