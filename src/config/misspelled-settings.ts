import { distance } from 'fastest-levenshtein';

/** Two letters that are swapped count as two. */
const MAX_DISTANCE = 2;

/** Variables that other programs read, and that an operator may expect to have an effect here. */
const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  // Heroku and other platforms set it for the number of processes.
  WEB_CONCURRENCY:
    'the service is one process. For more, run more instances of it, as docs/scaling.md says.',
  PGSSLCERT: 'write sslcert=FILE in DATABASE_URL.',
  PGSSLKEY: 'write sslkey=FILE in DATABASE_URL.',
};

/**
 * A variable that nearly is a setting is a mistake; every other one belongs to another program.
 *
 * @param names of variables
 * @param settings all names of settings
 * @returns a sentence for each variable whose name differs from that of a setting in one or two letters
 */
export function misspelledSettings(
  names: readonly string[],
  settings: readonly string[],
): string[] {
  return names.flatMap((name) => {
    const meant = settings.includes(name)
      ? undefined
      : settings.find((setting) => isNearly(name, setting));
    return meant === undefined ? [] : [`${name} is not a setting: did you mean ${meant}?`];
  });
}

/** In a short name, only one letter may differ: HOME is not a misspelled HOST. */
function isNearly(name: string, setting: string): boolean {
  return (
    distance(name.toUpperCase(), setting) <= Math.min(MAX_DISTANCE, Math.floor(setting.length / 4))
  );
}

/** @returns what an operator should know of the variables of the process */
export function warningsAbout(names: readonly string[], settings: readonly string[]): string[] {
  const effectless = names.filter((name) => Object.hasOwn(WITHOUT_EFFECT, name));
  return [
    ...misspelledSettings(names, settings),
    ...effectless.map((name) => `${name} has no effect: ${WITHOUT_EFFECT[name]}`),
  ];
}
