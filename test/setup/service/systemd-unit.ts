import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../process/command.js';

const UNIT = readFileSync(join(ROOT, 'deploy/systemd/plant-store@.service'), 'utf8');

/** All values of a directive of the unit in deploy/systemd, in their order. */
export function valuesOf(directive: string): string[] {
  return [...UNIT.matchAll(/^(\w+)=(.*)$/gm)]
    .filter(([, name]) => name === directive)
    .map(([, , value]) => value!);
}

/**
 * The variables that the unit sets.
 *
 * @param specifiers what stands for the specifiers of systemd in them, such as `%i`
 */
export function environmentOf(
  specifiers: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const variables = valuesOf('Environment').flatMap((value) => value.split(' '));
  return Object.fromEntries(
    variables.map((variable) => {
      const [name, value] = variable.split('=') as [string, string];
      return [name, value.replaceAll(/%\w/g, (specifier) => specifiers[specifier] ?? specifier)];
    }),
  );
}
