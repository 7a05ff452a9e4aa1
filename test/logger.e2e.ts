import { describe, expect, it } from '@jest/globals';
import { runProgram } from './setup/command.js';

/** What a logger writes in a process of its own; a line of `calls` is one call of it. */
async function linesOf(calls: string, level = 'info', worker?: number): Promise<string[]> {
  const command = runProgram(process.execPath, [
    '--input-type=module',
    '--eval',
    `import { createLogger } from './dist/logging/logger.js';
     const logger = createLogger({ level: '${level}' }, ${worker});
     ${calls}`,
  ]);
  await command.exit();
  expect(command.stderr).toBe('');
  return command.stdout.split('\n').filter((line) => line !== '');
}

const withoutTime = (line: string) => line.replace(/"time":"[\d\-T:.]+Z"/, '"time":""');

describe('the line of a request', () => {
  it.each([undefined, 3])('is the one that pino would write, of worker %s', async (worker) => {
    const fields = String.raw`{
      requestId: 'a"b\\c\n\u0001',
      status: 200,
      duration: 0.1,
      error: undefined,
      token: 'Gewächshaus 🌱 \ud83c',
      isLast: true,
      none: null,
    }`;
    const [ours, pinos] = await linesOf(
      `logger.infoLine(${fields}, 'request "1"');
       logger.info(${fields}, 'request "1"');`,
      'info',
      worker,
    );
    expect(withoutTime(ours!)).toBe(withoutTime(pinos!));
    expect(JSON.parse(ours!)).toMatchObject({ level: 30, status: 200, msg: 'request "1"' });
    expect((JSON.parse(ours!) as { worker?: number }).worker).toBe(worker);
  });

  it('is not written above its level', async () => {
    const lines = await linesOf(
      `logger.infoLine({}, 'quiet');
       logger.warn('loud');`,
      'warn',
    );
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('loud');
  });
});
